"""Engine as users hold it: the engine below, and the languages that can be spoken to it, each loaded at its first word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite import engine

if TYPE_CHECKING:
    from tektite.sql import Result


class Engine(engine.Engine):
    __doc__ = engine.Engine.__doc__

    def sql(self, text: str, **parameters: Any) -> Result:
        """Run one or several statements of SQL, separated by semicolons; the last one's result.

        `parameters` are the values of `$name` in the text.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.sql("CREATE TABLE sales (shop varchar, amount int)")
        >>> totals = "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop"
        >>> view = engine.sql(f"CREATE MATERIALIZED VIEW totals AS {totals}").view
        >>> engine.sql("INSERT INTO sales VALUES ('north', 3), ('north', 4), ('south', 5)").message
        'INSERT 0 3'
        >>> sorted(view.rows())
        [('north', 7), ('south', 5)]
        >>> list(engine.sql("SELECT total FROM totals WHERE shop = $shop", shop="south"))
        [(5,)]
        """
        from tektite.sql import run

        return run(self, text, parameters)
