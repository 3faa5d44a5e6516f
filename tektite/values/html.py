"""Tables as HTML, for notebooks. Everything that comes from data is escaped, and long texts are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN_ROWS = 20
SHOWN_LETTERS = 80
ROOM = "padding:0.15em 0.6em"
"""The style of a cell. Notebooks that have none of their own, such as marimo's, would put columns against each other."""


def html_table(titles: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", more: str = "") -> str:
    """A table with a caption, and a line below it that says what is left out.

    >>> html_table(["x"], [(1,), (None,)], "two <rows>").count("<tr>")
    3
    """
    head = "".join(f"<th style='{ROOM}'>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    below = f"<div><small>{escape(more)}</small></div>" if more else ""
    above = f"<caption style='text-align:left;caption-side:top'>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_text(text: str) -> str:
    """A text with its line breaks, such as a plan."""
    return f"<pre>{escape(text)}</pre>"


def _cell(value: Any) -> str:
    if value is None:
        return f"<td style='{ROOM}'><i>NULL</i></td>"
    text = str(value)
    shown = text if len(text) <= SHOWN_LETTERS else f"{text[: SHOWN_LETTERS - 1]}…"
    align = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    return f"<td style='{ROOM};text-align:{align}'>{escape(shown)}</td>"
