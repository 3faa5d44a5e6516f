"""Refuses Python's operators on whole collections. Each error says what to write, where Python would raise a TypeError that
names two classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from tektite.errors import IncorrectError

_COLUMNS: Final = "columns are computed by c.with_columns(x=c['x'] {0} 1)"
_CONDITIONS: Final = "rows are chosen by c.filter(c['x'] {0} 1)"
_SIGNS: Final = {
    "add": ("+", f"one.union(other) has the rows of both; {_COLUMNS}"),
    "sub": ("-", f"one.except_(other) has the rows that the other lacks; {_COLUMNS}"),
    "and": ("&", "one.intersect(other) has the rows of both; conditions are combined in filter(c['x'] & c['y'])"),
    "or": ("|", "one.union(other, distinct=True) has the rows of either; conditions are combined in filter(c['x'] | c['y'])"),
    "mul": ("*", f"one.join(other, how='cross') has all pairs; {_COLUMNS}"),
    "truediv": ("/", _COLUMNS), "floordiv": ("//", _COLUMNS), "mod": ("%", _COLUMNS), "pow": ("**", _COLUMNS),
    "matmul": ("@", "one.join(other, on='k').agg(tk.sum(tk.col('a') * tk.col('b'))) is an inner product"),
    "xor": ("^", "one.except_(other), and the other way round, have the rows of one alone"),
    "lt": ("<", _CONDITIONS), "le": ("<=", _CONDITIONS), "gt": (">", _CONDITIONS), "ge": (">=", _CONDITIONS),
}  # fmt: skip
_MIRRORED: Final = ("add", "sub", "and", "or", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "xor")
_ALONE: Final = {
    "invert": ("~", "a condition is negated: c.filter(~c['x'])"),
    "neg": ("-", "a column is negated: c.with_columns(x=-c['x'])"),
    "pos": ("+", "a column stays as it is: c['x']"),
    "int": ("int", "a value of one row is c.collect()['x'][0].as_py()"),
    "float": ("float", "a value of one row is c.collect()['x'][0].as_py()"),
    "round": ("round", "a column is rounded: c.with_columns(c['x'].round(2))"),
    "abs": ("abs", "a column's absolute value is c['x'].abs()"),
}


class RefusesOperators:
    """Refuses Python's operators.

    >>> import tektite as tk
    >>> tk.Engine().values({"x": [1, 2]}) + 1
    Traceback (most recent call last):
    tektite.errors.IncorrectError: Collection + ...: operators are for columns. one.union(other) has the rows of both; ...
    """

    __slots__ = ()


def _refusing(shown: str, instead: str) -> Any:
    def refuse(self: object, *others: object) -> NoReturn:
        raise IncorrectError(f"{shown.format(type(self).__name__)}: operators are for columns. {instead}")

    return refuse


for _name, (_sign, _instead) in _SIGNS.items():
    _method = _refusing(f"{{}} {_sign} ...", _instead.format(_sign))
    setattr(RefusesOperators, f"__{_name}__", _method)
    if _name in _MIRRORED:
        setattr(RefusesOperators, f"__r{_name}__", _method)
for _name, (_sign, _instead) in _ALONE.items():
    setattr(RefusesOperators, f"__{_name}__", _refusing(f"{_sign} of a {{}}", _instead))


class NamesAlone(tuple[str, ...]):
    """Names, such as those of an engine's tables: a tuple that says how one gets at what they name.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> _ = engine.create_table("sales", {"shop": str})
    >>> engine.tables
    ('sales',)
    >>> engine.tables["sales"]
    Traceback (most recent call last):
    tektite.errors.IncorrectError: these are names alone: write .table('sales'), or .view('sales'), for what has one
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers know that it is a tuple

        def __call__(self, *_: object) -> NoReturn:
            raise IncorrectError("these are names, and no method: write .tables or .views, without ()")

        def __getitem__(self, key: object) -> object:
            if isinstance(key, str):
                raise IncorrectError(
                    f"these are names alone: write .table({key!r}), or .view({key!r}), for what has one"
                )
            return tuple.__getitem__(self, key)
