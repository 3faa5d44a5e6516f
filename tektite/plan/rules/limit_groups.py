"""Groups only what a conjunction can use: rows whose group no other relation asks for are dropped before they are grouped.

In a conjunction, a relation may be one aggregate for each key, while a table has at most one row for each key, and conditions
that few of its rows pass. That table is joined with the rows before they are grouped, too. The groups that are left have all
their rows, and the conjunction drops the others in any case. This is what a correlated subquery asks for: the average of the
orders of a part, for few of the parts.

If the conjunction joins the same rows with that table itself, it does so once: with the rows, to group them and to compare them
with their group.

Groups that all queries could share become those of one query, so the conditions must leave very little.

>>> from types import SimpleNamespace
>>> from tektite.plan.algebra import Linear, Read
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> parts, orders = (SimpleNamespace(name=name, is_stream=False, orders=[(0,)], unique=(0,)) for name in ("parts", "orders"))
>>> part, order = Schema(id=Int, kind=Int, size=Int), Schema(number=Int, part=Int, price=Int)
>>> spent = Aggregate(Schema(part=Int, spent=Int), Read(order, orders), (1,), (Linear("sum", 2),))
>>> clauses = Clause(Read(part, parts), ("p", "kind", "size")), Clause(spent, ("p", "spent"))
>>> before = Match(Schema(p=Int, spent=Int), clauses, (), (col("kind") == 3, col("size") == 8), "auto")
>>> print("\\n".join(explain(before)))
join of (p, kind, size), (p, spent) to (p, spent)
  where kind == 3
  where size == 8
  read parts
  group by part: spent = sum(price)
    read orders
>>> print("\\n".join(explain(*limit_groups([before]))))
join of (p, kind, size), (p, spent) to (p, spent)
  where kind == 3
  where size == 8
  read parts
  group by part: spent = sum(price)
    join of (number, part, price), (part, kind, size) to (number, part, price)
      where kind == 3
      where size == 8
      read orders
      read parts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tektite.expr import Expr, col
from tektite.expr.fold import can_fail
from tektite.expr.predicates import reads_only
from tektite.plan.algebra import Aggregate, Clause, First, Match, Operator, Project, Read
from tektite.plan.estimates import SELECTIVITY, passing
from tektite.plan.names import take_name
from tektite.plan.rules.flatten_joins import flattened, is_deep, variable_types
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.unique import unique_columns
from tektite.values.schema import Schema

FEW = 0.01
"""The share of a relation's rows up to which groups are limited to them: what two equalities leave."""


def asks_for_groups(match: Match) -> bool:
    """Whether an open conjunction outside of loops has groups and conditions."""
    return (
        bool(match.where)
        and match.is_open
        and len(match.clauses) > 1
        and any([isinstance(clause.operator, Aggregate | First) for clause in match.clauses])
        and match.loop is None
    )


@rule_for(Match, when=asks_for_groups)
def limit_groups(match: Match, context: PassContext) -> Match:
    """An open conjunction in which groups are made of the rows that it can use."""
    if asks_for_groups(match):
        for clause in match.clauses:
            if isinstance(clause.operator, Aggregate | First) and not context.shared(clause.operator):
                match = with_limit(match, clause, clause.operator, context)
    return match


def with_limit(match: Match, clause: Clause, groups: Aggregate | First, context: PassContext) -> Match:
    """A conjunction with the groups of one clause limited, if a table limits them."""
    key = groups.key if isinstance(groups, Aggregate) else range(groups.key)
    names = groups.input.schema.names
    keys = {term: names[column] for term, column in zip(clause.terms, key, strict=False) if isinstance(term, str)}
    limits = [limit for other in match.clauses if (limit := limit_of(match, other, keys, set(names))) is not None]
    if not limits:
        return match
    rows = limited(groups.input, min(limits, key=lambda limit: limit.share), context)
    return joined_once(match, clause, rows, keys) or regrouped(match, clause, rows)


def regrouped(match: Match, clause: Clause, rows: Operator, same: Sequence[Clause] = ()) -> Match:
    """A conjunction with groups of other rows than before, without the clauses `same`."""
    groups = clause.operator
    assert isinstance(groups, Aggregate | First)
    instead = Clause(replace(groups, input=rows), clause.terms)
    kept = [other for other in match.clauses if not any([other is one for one in same])]
    return replace(match, clauses=tuple([instead if other is clause else other for other in kept]))


@dataclass(frozen=True)
class Limit:
    """A table that a few groups are looked up in, with its conditions, and the share of its rows that pass them."""

    clause: Clause
    where: tuple[Expr, ...]
    share: float


def limit_of(match: Match, clause: Clause, keys: Mapping[str, str], taken: set[str]) -> Limit | None:
    """A table as a limit of groups, or None if it has several rows for a key or leaves many. `keys` are the variables that are
    keys of the groups, with the names of their columns. Conditions that may fail stay where they are.
    """
    table = clause.operator
    if not isinstance(table, Read):
        return None
    unique = unique_columns(table)
    if not unique or not all(clause.terms[column] in keys or column in clause.constants for column in unique):
        return None
    if not keys.keys() & clause.variables.keys():
        return None
    columns = table.schema.positions
    own = {name: col(table.schema.names[places[0]]) for name, places in clause.variables.items()}
    where = [
        part
        for part in match.where
        if part.columns() and reads_only(part, clause.variables) and not can_fail(part.substitute(own), columns)
    ]
    share = passing(where) * SELECTIVITY["eq"] ** len(clause.constants)
    if share > FEW:
        return None
    read = {name for part in where for name in part.columns()}
    variables = {
        name: keys[name] if name in keys else take_name(name, taken)
        for name, places in clause.variables.items()
        if name in keys or name in read or len(places) > 1
    }
    terms = tuple([variables.get(term) if isinstance(term, str) else term for term in clause.terms])
    named = {name: col(variables[name]) for name in read}
    return Limit(Clause(table, terms), tuple([part.substitute(named) for part in where]), share)


def limited(rows: Operator, limit: Limit, context: PassContext) -> Operator:
    """The rows whose groups a limit asks for."""
    clauses = Clause(rows, rows.schema.names), limit.clause
    found = Match(rows.schema, clauses, (), limit.where, "auto")
    return flattened(found, context) if is_deep(found) else found


def joined_once(match: Match, clause: Clause, rows: Operator, keys: Mapping[str, str]) -> Match | None:
    """A conjunction whose relations are joined once, with the rows to group among them; None if it joins other rows."""
    outputs = {name: col(name) for name in rows.schema.names}
    if isinstance(rows, Project) and rows.predicate is None:
        outputs = dict(zip(rows.schema.names, rows.outputs, strict=True))
        rows = rows.input
    if not isinstance(rows, Match):
        return None
    same = paired(match, clause, rows)
    if same is None:
        return None
    known = {str(outputs[name].params[0]): term for term, name in keys.items() if outputs[name].op == "col"}
    variables = alike(rows.clauses, same, known, match)
    if variables is None:
        return None
    named = {name: col(variable) for name, variable in variables.items()}
    conditions = {part.substitute(named).fingerprint for part in rows.where}
    where = tuple([part for part in match.where if part.fingerprint in conditions])
    if {part.fingerprint for part in where} != conditions:
        return None
    both = tuple([both_read(below, other, variables) for below, other in zip(rows.clauses, same, strict=True)])
    joined = Match(Schema(variable_types(both)), both, (), where, "auto")
    grouped = Project(
        clause.operator.inputs[0].schema, joined, tuple([output.substitute(named) for output in outputs.values()]), None
    )
    found = regrouped(match, clause, grouped, same)
    rest = tuple([part for part in match.where if not any([part is one for one in where])])
    return replace(found, clauses=(Clause(joined, joined.schema.names), *found.clauses), where=rest)


def both_read(below: Clause, other: Clause, variables: Mapping[str, str]) -> Clause:
    """A relation with the variables of two clauses that read it, under the names of the second one."""
    pairs = zip(other.terms, below.terms, strict=True)
    terms = [term if term is not None or name is None else variables[str(name)] for term, name in pairs]
    return Clause(other.operator, tuple(terms))


def paired(match: Match, clause: Clause, rows: Match) -> list[Clause] | None:
    """For each relation below groups, the one of the conjunction that reads the same; None if there is not just one of each."""
    found = []
    for below in rows.clauses:
        readers = [other for other in match.clauses if other is not clause and other.operator is below.operator]
        if len(readers) != 1:
            return None
        found += readers
    return found if len(set(map(id, found))) == len(found) and not rows.without else None


def alike(
    clauses: Sequence[Clause], same: Sequence[Clause], known: Mapping[str, str], match: Match
) -> dict[str, str] | None:
    """The variable of the conjunction for each variable below groups, if both join the same columns. A column that the
    conjunction does not look at gets a variable, unless it is joined or tells groups apart below: the conjunction pairs its
    rows with groups that have other values there.
    """
    found = dict(known)
    taken = {name for clause in match.clauses for name in clause.variables}
    for below, other in zip(clauses, same, strict=True):
        for term, wanted in zip(below.terms, other.terms, strict=True):
            if isinstance(term, Expr) or isinstance(wanted, Expr):
                if not (isinstance(term, Expr) and isinstance(wanted, Expr) and term.fingerprint == wanted.fingerprint):
                    return None
            elif term is not None:
                found.setdefault(term, wanted if wanted is not None else take_name(term, taken))
    own, theirs = columns_of(clauses), columns_of(same)
    places = {found[name]: columns for name, columns in own.items()}
    if len(places) < len(own):
        return None
    fresh = {
        name
        for name, columns in places.items()
        if name not in theirs and name not in known.values() and len(columns) == 1
    }
    joined = places.keys() | {name for name, columns in theirs.items() if len(columns) > 1}
    return found if all(places.get(name) == theirs.get(name) for name in joined - fresh) else None


def columns_of(clauses: Sequence[Clause]) -> dict[str, list[tuple[int, int]]]:
    """The relation and column of each place of each variable."""
    found: dict[str, list[tuple[int, int]]] = {}
    for at, clause in enumerate(clauses):
        for name, columns in clause.variables.items():
            found.setdefault(name, []).extend([(at, column) for column in columns])
    return found
