"""`match`: conjunctions of any number of clauses.

Every mistake is reported here. The result is a `plan.Match` in which

* every literal has the type of its column,
* every variable has one type, and
* no float is compared. Floats are compared as numbers, through an integer column beside the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from tektite.errors import IncorrectError, NotFoundError
from tektite.expr import Expr, col, lift, lit, rank, type_of
from tektite.expr.predicates import conjunction
from tektite.former_names import former_options
from tektite.plan import algebra as plan
from tektite.plan.algebra import describe
from tektite.query.collection import Collection
from tektite.query.derived import derived
from tektite.unknown_options import explained
from tektite.values import types
from tektite.values.columns import hint
from tektite.values.schema import Schema

Given = tuple[Collection, Sequence[Any]]
"""A clause as a user writes it: a collection, and a term for each of its columns."""

Joins = Literal["auto", "binary", "delta", "hector"]
"""How a conjunction is kept up to date."""
STRATEGIES: tuple[Joins, ...] = get_args(Joins)


@former_options(strategy="joins")
@explained
def match(
    *clauses: Given,
    find: Sequence[str] | None = None,
    where: Sequence[Expr] | Expr = (),
    without: Sequence[Given] = (),
    joins: Joins = "auto",
    order: Sequence[int] | Sequence[str] | None = None,
) -> Collection:
    """All values of variables for which each clause's collection has the row that the clause describes.

    A clause is a collection and one term for each of its columns: a variable by its name, a literal such as `tk.lit(3)`, or None
    for a column that does not matter. A variable in several places means that their values are equal. NULL equals nothing.

    * `find` names the variables to return. The default is all of them.
    * `where` lists predicates over variables. A predicate that two variables are equal is used for joining.
    * `without` lists clauses that must have no match. Their variables must occur in other clauses.
    * `order` forces an order of the clauses, by number, or of the variables, by name.
    * `joins` says how the result is maintained:

      ========  ==================================================================================================
      binary    by joins of two
      delta     by one pipeline for each clause, over shared indexes
      hector    variable by variable, which is worst-case optimal
      auto      by one of these, with clauses ordered by keys and by the sizes of what they read.
                `Collection.explain` says what was chosen
      ========  ==================================================================================================

    Multiplicities multiply; nothing is made distinct.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> triangles = tk.match(
    ...     (edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a")),
    ...     where=[tk.col("a") < tk.col("b"), tk.col("a") < tk.col("c")],
    ... )
    >>> view = engine.install("triangles", triangles)
    >>> _ = edges.insert([(1, 2), (2, 3), (3, 1), (3, 4)])
    >>> view.rows()
    [(1, 2, 3)]
    """
    if not clauses:
        raise IncorrectError("match needs at least one clause, such as (edges, ('a', 'b'))")
    check_strategy(joins, "match: joins")
    _check_list(without, "without", "clauses such as (edges, ('a', 'b'))")
    if not isinstance(where, Expr):
        _check_list(where, "where", "expressions such as tk.col('a') < tk.col('b')")
    positive = [_checked(given, f"clause {at}") for at, given in enumerate(clauses)]
    negative = [_checked(given, f"without clause {at}") for at, given in enumerate(without)]
    _check_types(positive, negative)
    variables = list(dict.fromkeys(v for _, clause in positive for v in clause.variables))
    _check_bound(negative, variables)
    names = variables if find is None else _known(find, variables, "find")
    found = dict.fromkeys(names)
    if len(found) < len(names):
        raise IncorrectError(f"match: find names a variable twice in {list(names)}")
    predicates = (where,) if isinstance(where, Expr) else tuple(where)
    typed = _types([clause for _, clause in positive])
    for predicate in predicates:
        _check_predicate(predicate, typed)
    sides = [clause for _, clause in positive], [clause for _, clause in negative]
    companions = _companions(*sides)
    valued: set[str] = set()
    operator = plan.Match(
        Schema({name: typed[name] for name in found}),
        tuple([_plain(clause, companions, valued) for clause in sides[0]]),
        tuple([_plain(clause, companions, None) for clause in sides[1]]),
        predicates,
        joins,
        _order(order, len(clauses), variables, companions),
    )
    return derived(operator, *(collection for collection, _ in (*positive, *negative)))


def _check_list(given: object, what: str, wanted: str) -> None:
    if not isinstance(given, list | tuple):
        raise IncorrectError(f"match: {what} takes a list of {wanted}, not {given!r}")


def check_strategy(strategy: str, what: str) -> None:
    """Raise if this is not a strategy. `what` names the argument in the error."""
    if strategy not in STRATEGIES:
        raise IncorrectError(f"{what} is one of {', '.join(STRATEGIES)}, not {strategy!r}")


def _checked(given: Given, name: str) -> tuple[Collection, plan.Clause]:
    """A clause of the plan. Raises if its terms do not fit the collection."""
    if not (isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], Collection)):
        raise IncorrectError(f"match: {name} must be a collection and its terms, such as (edges, ('a', 'b'))")
    collection, terms = given
    if isinstance(terms, str) or not isinstance(terms, Sequence):
        raise IncorrectError(f"match: {name} needs a list of terms, one for each column, not {terms!r}")
    schema = collection.schema
    if len(terms) != len(schema.names):
        raise IncorrectError(
            f"match: {name} has {len(terms)} terms, but {describe(collection.operator)} has {len(schema.names)} columns: "
            f"{', '.join(schema.names)}"
        )
    checked = tuple(
        _term(term, type, f"{name}, column {column!r}")
        for term, column, type in zip(terms, schema.names, schema.types, strict=True)
    )
    return collection, plan.Clause(collection.operator, checked)


def _term(term: Any, type: types.Type, where: str) -> str | Expr | None:
    if term is None:
        return None
    if isinstance(term, str):
        if not term:
            raise IncorrectError(f"match: {where}: a variable needs a name")
        return term
    literal = lift(term)
    if literal.op != "lit":
        raise IncorrectError(
            f"match: {where}: {term} is neither a variable, nor a literal, nor None; put conditions into where"
        )
    found, value = literal.params
    if found == type:
        return literal
    try:
        return lit(value, type)
    except IncorrectError as error:
        raise IncorrectError(
            f"match: {where} is {type}, but the literal {literal} is {found}; give one of that type"
        ) from error


def _check_types(positive: Sequence[tuple[Collection, plan.Clause]], negative: Sequence[Any]) -> None:
    """Raise if a variable has different types in two places."""
    seen: dict[str, tuple[types.Type, str]] = {}
    sides = [(clause, f"clause {at}") for at, (_, clause) in enumerate(positive)]
    sides += [(clause, f"without clause {at}") for at, (_, clause) in enumerate(negative)]
    for clause, name in sides:
        schema = clause.operator.schema
        for variable, columns in clause.variables.items():
            for column in columns:
                here = f"in {name} ({describe(clause.operator)}.{schema.names[column]})"
                type, there = seen.setdefault(variable, (schema.types[column], here))
                if type != schema.types[column]:
                    raise IncorrectError(
                        f"match: variable {variable!r} is {type} {there} and {schema.types[column]} {here}; cast one of them"
                    )


def _check_bound(negative: Sequence[tuple[Collection, plan.Clause]], variables: Sequence[str]) -> None:
    for at, (_, clause) in enumerate(negative):
        for variable in clause.variables:
            if variable not in variables:
                raise IncorrectError(
                    f"match: variable {variable!r} of without clause {at} is in no other clause; use None for a column that "
                    "does not matter"
                )


def _known(names: Sequence[str], variables: Sequence[str], what: str) -> list[str]:
    if not isinstance(names, str | list | tuple):
        raise IncorrectError(f"match: {what} takes a list of variables, not {names!r}")
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in variables:
            raise NotFoundError(f"match: {what}: no variable {name!r}: {hint(name, variables, 'variables')}")
    return names


def _check_predicate(predicate: Any, typed: dict[str, types.Type]) -> None:
    if not isinstance(predicate, Expr):
        raise IncorrectError(f"match: where takes expressions such as tk.col('a') < tk.col('b'), not {predicate!r}")
    _known(predicate.columns(), list(typed), f"where {predicate}")
    found = type_of(predicate, {name: (at, type) for at, (name, type) in enumerate(typed.items())})
    if found != types.Bool:
        raise IncorrectError(f"match: where needs a bool; {predicate} is {found}")


def _types(clauses: Sequence[plan.Clause]) -> dict[str, types.Type]:
    found: dict[str, types.Type] = {}
    for clause in clauses:
        for variable, columns in clause.variables.items():
            found.setdefault(variable, clause.operator.schema.types[columns[0]])
    return found


def _order(
    order: Sequence[int] | Sequence[str] | None,
    clauses: int,
    variables: Sequence[str],
    companions: dict[str, str],
) -> tuple[int, ...] | tuple[str, ...] | None:
    if order is None:
        return None
    if not isinstance(order, list | tuple):
        raise IncorrectError(f"match: order takes a list of clauses by number or of variables by name, not {order!r}")
    given: tuple[Any, ...] = tuple(order)
    if sorted(map(repr, given)) == sorted(map(repr, range(clauses))):
        return given
    if sorted(map(repr, given)) == sorted(map(repr, variables)):
        return tuple(name for v in given for name in ((companions[v], v) if v in companions else (v,)))
    raise IncorrectError(
        f"match: order lists every clause by its number (0 to {clauses - 1}) or every variable by its name "
        f"({', '.join(variables)}), not {list(given)}"
    )


def _companions(positive: Sequence[plan.Clause], negative: Sequence[plan.Clause]) -> dict[str, str]:
    """For each float that several clauses share, the name of the integer variable that is compared in its place."""
    clauses = (*positive, *negative)
    places = [v for clause in clauses for v in clause.variables]
    floats = [v for v, type in _types(positive).items() if type.has_keys and places.count(v) > 1]
    found: dict[str, str] = {}
    for variable in floats:
        name = f"{variable} as a key"
        while name in places:
            name += " "
        found[variable] = name
    return found


def _plain(clause: plan.Clause, companions: dict[str, str], valued: set[str] | None) -> plan.Clause:
    """A clause in which no float is compared. A variable has the value of the first place where it is written. `valued` holds the
    variables that already have one; None means that values do not matter.
    """
    schema = clause.operator.schema
    terms = list(clause.terms)
    equal: list[Expr] = []
    keys: dict[str, Expr] = {}
    for column, (name, type) in enumerate(zip(schema.names, schema.types, strict=True)):
        term = terms[column]
        if not type.has_keys or term is None:
            continue
        if isinstance(term, Expr):
            equal.append(rank(col(name)) == rank(term))
            terms[column] = None
            continue
        first = clause.variables[term][0]
        if column != first:
            equal.append(rank(col(name)) == rank(col(schema.names[first])))
            terms[column] = None
        elif term in companions:
            keys[companions[term]] = rank(col(name))
            if valued is None or term in valued:
                terms[column] = None
            else:
                valued.add(term)
    if not keys and not equal:
        return clause
    columns = dict(zip(schema.names, schema.types, strict=True))
    outputs = tuple(map(col, schema.names))
    for at, key in enumerate(keys.values()):
        name = f"__key_{at}"
        while name in columns:
            name += "_"
        columns[name] = types.Int
        outputs += (key,)
    predicate = conjunction(equal) if equal else None
    return plan.Clause(plan.Project(Schema(columns), clause.operator, outputs, predicate), (*terms, *keys))
