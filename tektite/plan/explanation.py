"""Explanation: how a query is kept up to date, as text, as plain data, and as notebooks show it."""

from __future__ import annotations

from html import escape
from typing import Any

from tektite.values.html import ROOM, html_table, html_text

INDENT = 1.5
"""How far an operator stands to the right of the one that it is an input of, in letters."""


class Explanation(str):
    """A text that says how a query is kept up to date. `data` says the same as plain data, for programs and pictures.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> found = sales.filter(tk.col("amount") > 3).explain()
    >>> print(found)
    plan
      filter amount > 3  (about 1 rows)
        read sales  (about 1 rows)
    >>> [operator["text"] for operator in found.data["operators"]]
    ['filter amount > 3', 'read sales']
    """

    data: dict[str, Any]
    """The explanation as values that JSON can hold:

    * `operators`: those of the plan, the result first. Each has an `id`, its `kind`, `text`, `columns`, about how many `rows`,
      the ids of its `inputs`, the `loops` that it is in, and for a variable of a loop the id of its definition as `feedback`.
    * `decisions`: lines on the orders and strategies of joins.
    * `indexes`: what it reads. Each has `collection`, `columns`, `origin`, and as `of` the ids of the operators that it
      arranges, as far as they are in the plan.
    * `analyzed`: with EXPLAIN ANALYZE, what operators did.
    """

    def __new__(cls, text: str, data: dict[str, Any]) -> Explanation:
        made = super().__new__(cls, text)
        made.data = data
        return made

    def __getnewargs__(self) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        return str(self), self.data

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the operators, the decisions and the indexes."""
        by_id = {operator["id"]: operator for operator in self.data["operators"]}
        lines: list[str] = []
        shown: set[int] = set()

        def visit(id: int, depth: int) -> None:
            operator = by_id[id]
            again = id in shown and operator["kind"] not in ("Read", "Rows", "Variable")
            text = f"{operator['text']}{' (as above)' if again else ''}"
            more = "".join(f"<br><small>where {escape(part)}</small>" for part in operator["where"])
            loops = f" <small>in the loop {escape(' / '.join(operator['loops']))}</small>" if operator["loops"] else ""
            lines.append(
                f"<tr><td style='{ROOM};text-align:left;padding-left:{0.5 + INDENT * depth:.1f}em'>"
                f"{escape(text)}{loops}{more}</td>"
                f"<td style='{ROOM};text-align:right'>{operator['rows']:,}</td></tr>"
            )
            if again:
                return
            shown.add(id)
            feedback = operator.get("feedback")
            for given in [*operator["inputs"], *([] if feedback is None or feedback in shown else [feedback])]:
                visit(given, depth + 1)

        visit(0, 0)
        head = f"<thead><tr><th style='{ROOM};text-align:left'>operator</th><th style='{ROOM}'>about rows</th></tr></thead>"
        plan = f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"
        decisions = html_text("\n".join(self.data["decisions"])) if self.data["decisions"] else ""
        uses = self.data["indexes"]
        rows = [(f"{use['collection']} by ({', '.join(use['columns'])})", use["origin"]) for use in uses]
        return plan + decisions + (html_table(["index", "where it comes from"], rows) if rows else "")
