"""Queries in EDN: `[:find ... :in ... :with ... :where ...]`, as a vector or as a map; and what of the answer is wanted.

| :find | the answer is |
|---|---|
| `?x ?y` | rows |
| `[?x ...]` | the values of one variable |
| `[?x ?y]` | one row |
| `?x .` | one value |

`(pull ?e [:name {:knows [:name]}])` in place of a variable gives what the attributes say of an entity, as a dict.
"""

from __future__ import annotations

from dataclasses import dataclass

from tektite.datalog.syntax import ir
from tektite.datalog.syntax.edn import EdnForm, Group, Keyword, Symbol, read, show
from tektite.datalog.syntax.edn_rules import PatternReader, forward, is_source
from tektite.errors import IncorrectError
from tektite.values.types import Type

SECTIONS = ("find", "in", "with", "where")


@dataclass(frozen=True)
class Parameter:
    """One `:in` parameter: the variables it binds, and whether it takes one tuple of values or many."""

    name: str
    variables: tuple[ir.RuleVariable, ...]
    many: bool


@dataclass(frozen=True)
class PullPattern:
    """An attribute of a pull pattern: its name, whether it is followed backwards, and what is wanted of what is behind it."""

    attribute: str
    backwards: bool = False
    inner: tuple[PullPattern, ...] = ()
    position: ir.TextPosition = ir.NOWHERE

    @property
    def key(self) -> str:
        """Its name in the answer."""
        if not self.backwards:
            return f":{self.attribute}"
        space, slash, last = self.attribute.rpartition("/")
        return f":{space}{slash}_{last}"


@dataclass(frozen=True)
class Find:
    """A query: what to find, where, and the parameters."""

    terms: tuple[ir.HeadTerm, ...]
    names: tuple[str, ...]
    extra: tuple[ir.RuleVariable, ...]
    """Variables by which rows differ beside what is found: those of `:with`."""
    parameters: tuple[Parameter, ...]
    body: tuple[ir.Literal, ...]
    position: ir.TextPosition
    types: tuple[Type, ...] | None = None
    """The types of what is found, where they do not follow from the query alone: a goal's are those of its relation."""
    shape: str = "rows"
    """The shape of the answer: rows, values, row or value."""
    pulls: tuple[tuple[int, tuple[PullPattern, ...]], ...] = ()
    """The places of what is found that are pulled, with their patterns."""


def parse_query(text: str, source: str = "query") -> Find:
    """A query `[:find ... :in ... :with ... :where ...]`, or the same as a map.

    >>> find = parse_query("{:find [[?x ...]] :where [[?x :knows 3]]}")
    >>> find.names, find.shape
    (('x',), 'values')
    """
    forms = read(text, source)
    if len(forms) != 1 or not isinstance(forms[0], Group):
        raise IncorrectError(f"{source}: a query is one vector, [:find ... :where ...]")
    return QueryReader().query(forms[0])


class QueryReader(PatternReader):
    """Turns forms into queries."""

    def query(self, form: Group) -> Find:
        """`[:find ... :in ... :with ... :where ...]`."""
        sections = self._map(form) if form.kind == "map" else self._sections(form)
        if not sections.get("find"):
            raise IncorrectError(f"{form.position}: the query has no :find")
        if not sections.get("where") and not sections.get("in"):
            raise IncorrectError(f"{form.position}: the query has neither :where nor :in: nothing gives it values")
        items, shape = self._shape(sections["find"])
        terms, names, pulls = self._found(items)
        extra = tuple(self._variable(item) for item in sections.get("with", []))
        parameters = tuple(self._parameters(sections.get("in", [])))
        body = self.clauses(sections.get("where", []))
        return Find(terms, names, extra, parameters, body, form.position, None, shape, pulls)

    def _sections(self, form: Group) -> dict[str, list[EdnForm]]:
        sections: dict[str, list[EdnForm]] = {}
        current: list[EdnForm] | None = None
        for item in form.items:
            if isinstance(item, Keyword) and item.name in SECTIONS:
                if item.name in sections:
                    raise IncorrectError(f"{item.position}: :{item.name} stands here a second time")
                current = sections[item.name] = []
            elif current is None:
                raise IncorrectError(f"{item.position}: a query begins with :find, not {show(item)}")
            else:
                current.append(item)
        return sections

    def _map(self, form: Group) -> dict[str, list[EdnForm]]:
        sections: dict[str, list[EdnForm]] = {}
        for key, value in zip(form.items[::2], form.items[1::2], strict=False):
            if not isinstance(key, Keyword) or key.name not in SECTIONS:
                raise IncorrectError(f"{key.position}: a query has :find, :in, :with and :where, not {show(key)}")
            if key.name in sections:
                raise IncorrectError(f"{key.position}: :{key.name} stands here a second time")
            if not isinstance(value, Group) or value.kind != "vector":
                raise IncorrectError(f"{value.position}: :{key.name} of a map is a vector, not {show(value)}")
            sections[key.name] = list(value.items)
        if len(form.items) % 2:
            raise IncorrectError(f"{form.position}: the map has a key without a value")
        return sections

    def _shape(self, items: list[EdnForm]) -> tuple[list[EdnForm], str]:
        """The elements of :find, and the shape of the answer."""
        last = items[-1]
        if isinstance(last, Symbol) and last.name == ".":
            if len(items) != 2:
                raise IncorrectError(f"{last.position}: '.' asks for one value: [:find ?x . :where ...]")
            return items[:1], "value"
        first = items[0]
        if len(items) == 1 and isinstance(first, Group) and first.kind == "vector" and first.items:
            inner = list(first.items)
            if isinstance(inner[-1], Symbol) and inner[-1].name == "...":
                if len(inner) != 2:
                    raise IncorrectError(f"{first.position}: [?x ...] asks for the values of one variable")
                return inner[:1], "values"
            return inner, "row"
        return items, "rows"

    def _found(
        self, items: list[EdnForm]
    ) -> tuple[tuple[ir.HeadTerm, ...], tuple[str, ...], tuple[tuple[int, tuple[PullPattern, ...]], ...]]:
        terms: list[ir.HeadTerm] = []
        names: list[str] = []
        pulls: list[tuple[int, tuple[PullPattern, ...]]] = []
        for item in items:
            if isinstance(item, Group) and item.items and show(item.items[0]) == "pull":
                parts = [part for part in item.items[1:] if not is_source(part)]
                if len(parts) != 2:
                    raise IncorrectError(f"{item.position}: a pull is (pull ?e [:attribute ...]), found {show(item)}")
                pulls.append((len(terms), self._pulled(parts[1])))
                term: ir.HeadTerm = self._variable(parts[0])
            else:
                term = self.head_term(item)
            name = f"{term.kind}_{term.of}" if isinstance(term, ir.HeadAggregate) else str(term)
            while name in names:
                name += "_"
            terms.append(term)
            names.append(name)
        if pulls and any(isinstance(term, ir.HeadAggregate) for term in terms):
            raise IncorrectError(f"{items[0].position}: a query has aggregates or pulls, not both")
        return tuple(terms), tuple(names), tuple(pulls)

    def _pulled(self, form: EdnForm) -> tuple[PullPattern, ...]:
        """A pull pattern: attributes, `*`, and maps of attributes to the patterns of the entities behind them."""
        if not isinstance(form, Group) or form.kind != "vector":
            raise IncorrectError(f"{form.position}: a pull pattern is a vector of attributes, found {show(form)}")
        found: list[PullPattern] = []
        for item in form.items:
            if isinstance(item, Group) and item.kind == "map" and len(item.items) % 2 == 0:
                for key, inner in zip(item.items[::2], item.items[1::2], strict=True):
                    found.append(self._pulled_attribute(key, self._pulled(inner)))
            elif isinstance(item, Symbol) and item.name == "*":
                found.append(PullPattern("*", position=item.position))
            else:
                found.append(self._pulled_attribute(item, ()))
        return tuple(found)

    def _pulled_attribute(self, form: EdnForm, inner: tuple[PullPattern, ...]) -> PullPattern:
        if not isinstance(form, Keyword):
            raise IncorrectError(f"{form.position}: expected an attribute such as :name, found {show(form)}")
        name, backwards = forward(form.name)
        return PullPattern(name, backwards, inner, form.position)

    def _parameters(self, items: list[EdnForm]) -> list[Parameter]:
        found = []
        for item in items:
            if isinstance(item, Symbol) and (item.name == "%" or is_source(item)):
                continue
            if isinstance(item, Symbol):
                variable = self._variable(item)
                found.append(Parameter(variable.name, (variable,), many=False))
                continue
            if not isinstance(item, Group) or not item.items:
                raise IncorrectError(f"{item.position}: a parameter is ?x, [?x ...], [?x ?y] or [[?x ?y]]")
            if isinstance(item.items[0], Group):
                variables = tuple(self._variable(i) for i in item.items[0].items)
                many = True
            else:
                many = isinstance(item.items[-1], Symbol) and item.items[-1].name == "..."
                variables = tuple(self._variable(i) for i in (item.items[:-1] if many else item.items))
            found.append(Parameter("_".join(v.name for v in variables), variables, many))
        names = [variable.name for parameter in found for variable in parameter.variables]
        for name in names:
            if names.count(name) > 1:
                raise IncorrectError(
                    f"{items[0].position}: :in has ?{name} twice: give each parameter a name of its own"
                )
        return found
