"""A program: what one text registered, and the way to the answers of its predicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tektite.datalog.evaluate.explain import explain_predicate
from tektite.datalog.evaluate.rule_store import RuleStore
from tektite.datalog.rules.equivalence import with_closures
from tektite.datalog.rules.functors import with_functors
from tektite.datalog.rules.records import without_records
from tektite.datalog.rules.subsumption import with_subsumptions
from tektite.datalog.syntax import statements
from tektite.datalog.syntax.edn_rules import is_edn, parse_rules
from tektite.datalog.syntax.textbook import parse_program
from tektite.errors import ConflictError, NotFoundError
from tektite.query.collection import ROUND_LIMIT
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    from tektite.engine.view import View


@explains_options
class Program:
    """The rules of one text. Made by `Engine.datalog`; asking for a predicate builds it.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> program = engine.datalog('''
    ...     parent("ann", "bea").  parent("bea", "cid").
    ...     ancestor(x, y) :- parent(x, y).
    ...     ancestor(x, z) :- ancestor(x, y), parent(y, z).
    ... ''')
    >>> sorted(program["ancestor"].rows())
    [('ann', 'bea'), ('ann', 'cid'), ('bea', 'cid')]
    """

    def __init__(self, store: RuleStore, text: statements.Text, predicates: list[str]) -> None:
        self.store = store
        self.text = text
        self.predicates = tuple(predicates)
        self.dropped = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The predicates that the text reads from outside."""
        return tuple(dict.fromkeys(d.predicate for d in self.text.directives if d.kind == "input"))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The predicates that the text asks for by `.output` or `.printsize`."""
        return tuple(dict.fromkeys(d.predicate for d in self.text.directives if d.kind != "input"))

    def __getitem__(self, predicate: str) -> View:
        return self.view(predicate)

    def __iter__(self) -> Iterator[str]:
        return iter(self.predicates)

    def view(self, predicate: str) -> View:
        """The view of a predicate. The first to ask has it built; it stays until it is dropped."""
        return self.views(predicate)[0]

    def views(self, *predicates: str) -> list[View]:
        """The views of several predicates, built by one dataflow where they are not there yet."""
        if self.dropped:
            raise ConflictError(f"the program {self.text.source!r} was dropped")
        for predicate in predicates:
            if not self.store.known(predicate):
                known = ", ".join(map(repr, self.predicates)) or "none"
                raise NotFoundError(f"there is no rule for {predicate!r}; this program has rules for: {known}")
        return self.store.views(predicates)

    def explain(self, predicate: str, joins: bool = False) -> str:
        """Explains how a predicate is computed: its strata, its rules, and what is shared with others; with `joins`, how its
        rules are joined, too.
        """
        return explain_predicate(self.store, predicate, joins)

    def drop(self) -> None:
        """Forget the rules, unless a view or other rules need them."""
        if not self.dropped:
            self.store.unregister(self.predicates)
            self.dropped = True

    def __repr__(self) -> str:
        return f"<Program {self.text.source!r}: {', '.join(self.predicates)}>"


def register(
    store: RuleStore,
    text: str,
    source: str,
    rounds: int = ROUND_LIMIT,
    share: Mapping[str, bool] | None = None,
    joins: str = "auto",
    functors: Mapping[str, Callable[..., Any]] | None = None,
    macros: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
) -> Program:
    """Register a text in either syntax. `macros` and `folders` are for the preprocessor."""
    parsed = (
        parse_rules(text, source)
        if is_edn(text)
        else parse_program(text, source, macros, folders, store.state.structures)
    )
    patterns = store.patterns()
    parsed = replace(parsed, rules=tuple(replace(rule, body=patterns.body(rule.body)) for rule in parsed.rules))
    parsed = with_functors(parsed, functors or {})
    parsed = with_closures(with_subsumptions(parsed, store.engine.tables), store.engine.tables)
    columns, structures = store.structures(parsed)
    parsed = without_records(parsed, columns, structures)
    return Program(store, parsed, store.register(parsed, rounds, share, joins))
