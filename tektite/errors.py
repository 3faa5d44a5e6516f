"""Errors, by whose fault they are. Every error this package raises on purpose is a `TektiteError`.

A message names the thing it is about (the query, the column), what was found there, and what to do about it.
A call that raises one of these has changed nothing.
"""

from __future__ import annotations

from typing import Any, Self


class TektiteError(Exception):
    """The base of every error that Tektite raises on purpose.

    >>> error = NotFoundError("no column 'dts'")
    >>> error.code, error.retryable, error.details
    ('not-found', False, {})
    """

    code = "error"
    """A code for programs: it stays the same while messages become better."""

    retryable = False
    """Whether the same call may succeed if it is made again."""

    @property
    def shows_row(self) -> bool:
        """Whether the message may show values of a row that a query depends on: that was said of the error, or of what it was
        raised from. A server tells it only to users who may read the row.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> words = engine.create_table("words", {"word": str})
        >>> numbers = engine.install("numbers", words.select(n=tk.col("word").cast(int)))
        >>> _ = words.insert([("seven",)])
        >>> numbers.error.shows_row
        True
        """
        error: BaseException | None = self
        while error is not None:
            said = vars(error).get("_shows_row")
            if said is not None:
                return bool(said)
            error = error.__context__ if error.__cause__ is None else error.__cause__
        return False

    @shows_row.setter
    def shows_row(self, said: bool) -> None:
        self._shows_row = said

    @property
    def details(self) -> dict[str, Any]:
        """Facts that the message tells, for programs, where they are known: `view`, `table`, `kind` and `name` of what is meant,
        `line` and `column` of a statement, or the `condition`, such as `undefined-column`, as PostgreSQL calls it.

        >>> import tektite as tk
        >>> try:
        ...     tk.Engine().sql("SELECT 1 +")
        ... except tk.TektiteError as error:
        ...     print(error.code, error.details)
        ...
        incorrect {'line': 1, 'column': 10, 'condition': 'syntax-error'}
        """
        found: dict[str, Any] = self.__dict__.setdefault("_details", {})
        return found

    def about(self, **details: Any) -> Self:
        """This error, with facts for programs.

        >>> import tektite as tk
        >>> try:
        ...     tk.Engine().table("sales")
        ... except tk.NotFoundError as error:
        ...     print(error.details)
        ...
        {'condition': 'undefined-table', 'kind': 'table', 'name': 'sales'}
        """
        self.details.update(details)
        return self

    def reworded(self, message: str) -> Self:
        """An error with another message, of which everything else is known that is known of this one, but for the place in a
        statement.

        >>> error = NotFoundError("no column 'dts'").about(kind="column", name="dts").reworded("in view 'v': no column 'dts'")
        >>> error, error.details
        (NotFoundError("in view 'v': no column 'dts'"), {'kind': 'column', 'name': 'dts'})
        """
        found = type(self)(message)
        found.details.update({name: value for name, value in self.details.items() if name not in ("line", "column")})
        if self.shows_row:
            found.shows_row = True
        return found


class IncorrectError(TektiteError, ValueError):
    """The caller's input is wrong: a type, a number of columns, a column or a value that does not fit.

    >>> import tektite as tk
    >>> try:
    ...     tk.Engine().create_table("t", {"x": int}).insert([("one",)])
    ... except tk.IncorrectError as error:
    ...     print(error.code, isinstance(error, ValueError))
    ...
    incorrect True
    """

    code = "incorrect"


class NotFoundError(TektiteError, LookupError):
    """A name or an id that nothing here has.

    >>> import tektite as tk
    >>> try:
    ...     tk.Engine().table("nowhere")
    ... except tk.NotFoundError as error:
    ...     print(error.code, isinstance(error, LookupError))
    ...
    not-found True
    """

    code = "not-found"


class ConflictError(TektiteError):
    """The request is sound but clashes with what is already there: a name that is taken, something closed twice.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> try:
    ...     engine.create_table("sales", {"x": int})
    ... except tk.ConflictError as error:
    ...     print(error.code)
    ...
    conflict
    """

    code = "conflict"


class TransactionConflict(ConflictError):
    """A transaction was refused because another one was faster. Nothing was written: run it again.

    >>> TransactionConflict("table 'accounts': 1 of the keys ...").retryable
    True
    """

    code = "transaction-conflict"
    retryable = True


class FaultError(TektiteError):
    """The engine, or something that it needs, such as a disk or Spark, failed; `view` names the view that failed with it, if any.

    >>> print(FaultError("the file batch-7 is damaged", view="ratios"))
    view 'ratios': the file batch-7 is damaged
    """

    code = "fault"

    def __init__(self, message: str, view: str | None = None) -> None:
        super().__init__(message)
        self.view = view
        if view is not None:
            self.details["view"] = view

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.view is None else f"view {self.view!r}: {message}"


class FunctionError(FaultError):
    """A function of the user's failed, or returned something else than it was to.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> view = engine.create_view("v", sales.map_batches(lambda table: 1 / 0, x=tk.Int))
    >>> _ = sales.insert([("north", 3), ("south", 5)])
    >>> try:
    ...     view.rows()
    ... except tk.FunctionError as error:
    ...     print(error.code)
    ...
    function
    """

    code = "function"


def public_name(error: TektiteError) -> str:
    """The name of the class in this module that an error is one of, whatever it is in detail."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == __name__)


class UnsupportedError(TektiteError):
    """The request makes sense, but Tektite does not do it.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> try:
    ...     engine.sql("LISTEN news")
    ... except tk.UnsupportedError as error:
    ...     print(error.code)
    ...
    unsupported
    """

    code = "unsupported"
