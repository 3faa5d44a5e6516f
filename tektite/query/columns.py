"""Columns of an operator by name: their numbers, projections of them, and floats as keys.

Every function checks names and types and raises where the query is written. It returns an operator and knows nothing of engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tektite.errors import IncorrectError
from tektite.expr import Expr, col, key, shared_columns
from tektite.expr import type_of as expression_type
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers
from tektite.values.schema import Schema, shared_schema
from tektite.values.shared_values import shared
from tektite.values.types import Type

ColumnName = str | Expr
"""A column by its name, or as `col("x")` or `c["x"]`."""
ColumnNames = ColumnName | Sequence[ColumnName]
"""One column, or several."""


def column_list(names: ColumnNames) -> list[str]:
    """The names of one column, or of several. Raises if there is anything else, such as a computed expression."""
    given = list(names) if isinstance(names, list | tuple) else [names]
    found = [_column_name(name) for name in given]
    wrong = next((given[at] for at, name in enumerate(found) if name is None), None)
    if wrong is not None:
        computed = "; compute it before, by with_columns(x=...)" if isinstance(wrong, Expr) else ""
        raise IncorrectError(f"columns are given by a name or by a list of names, not {wrong!r}{computed}")
    return [name for name in found if name is not None]


def one_column(schema: Schema, name: ColumnName) -> str:
    """The name of a column that is there. Raises if it is not, and for several."""
    names = column_list(name)
    if len(names) != 1:
        raise IncorrectError(f"a column is given by its name, not {name!r}")
    schema.index(names[0])
    return names[0]


def _column_name(name: object) -> str | None:
    """The name of a column that is given by it, or as an expression that is the column itself."""
    if isinstance(name, Expr):
        return str(name.params[0]) if name.op == "col" else None
    return name if isinstance(name, str) else None


def column_numbers(schema: Schema, names: ColumnNames) -> ColumnNumbers:
    """The positions of some columns. A name may occur only once."""
    if names.__class__ is tuple and not names:
        return ()
    names = column_list(names)
    found = shared(tuple([schema.index(name) for name in names]))
    if len(set(found)) < len(found):
        raise IncorrectError(f"a column is named twice in {names}")
    return found


def project(
    operator: plan.Operator, outputs: Sequence[tuple[str, Expr]], predicate: Expr | None = None
) -> plan.Operator:
    """One column for each (name, expression), of the rows for which the predicate is true; the operator itself if these are its
    own columns, of all rows.
    """
    names = [name for name, _ in outputs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise IncorrectError(
            f"two columns would be called {twice!r}; rename one of them, with .alias(...) or as name=..."
        )
    positions = operator.schema.positions
    schema = shared_schema({name: expression_type(expression, positions) for name, expression in outputs})
    if (schema.names, schema.types) == (operator.schema.names, operator.schema.types):
        schema = operator.schema  # thousands of filters of a table share its schema
        if predicate is None and all([e.op == "col" and e.params[0] == name for name, e in outputs]):
            return operator
    return plan.Project(schema, operator, shared_columns(tuple([e for _, e in outputs])), predicate)


def select(operator: plan.Operator, names: Iterable[str]) -> plan.Operator:
    """The columns with these names, in this order."""
    return project(operator, [(name, col(name)) for name in names])


def with_columns(operator: plan.Operator, new: Mapping[str, Expr]) -> plan.Operator:
    """All columns. Each new one replaces the column of its name, or follows the others."""
    added = dict(new)
    outputs = [(name, added.pop(name, col(name))) for name in operator.schema.names]
    return project(operator, [*outputs, *added.items()])


def is_shown_apart(kind: Type) -> bool:
    """Whether equal values of a type are told apart by who reads them: `1 month` and `30 days`, but not 0.0 and -0.0."""
    return kind.interned and kind.has_keys


def with_equal_keys(operator: plan.Operator, columns: Iterable[int]) -> plan.Operator:
    """The same rows with one word for equal values in some columns (0.0 for -0.0), so that grouping by them finds these equal."""
    schema = operator.schema
    floats = [c for c in columns if schema.types[c].has_keys]
    if not floats:
        return operator
    return with_columns(operator, {schema.names[c]: key(col(schema.names[c])) for c in floats})
