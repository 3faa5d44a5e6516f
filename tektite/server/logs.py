"""Structured logs: one event a line on standard error, as `key=value` pairs or as JSON."""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any, TextIO


class Log:
    """Writes events. `form` is text or json."""

    def __init__(self, form: str = "text", out: TextIO | None = None) -> None:
        self._form = form
        self._out = sys.stderr if out is None else out

    def info(self, event: str, **facts: Any) -> None:
        """Something happened."""
        self._write("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Something happened that somebody should look at."""
        self._write("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Something failed that should not."""
        self._write("error", event, facts)

    def _write(self, level: str, event: str, facts: dict[str, Any]) -> None:
        moment = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._form == "json":
            line = json.dumps({"time": moment, "level": level, "event": event, **facts}, default=str)
        else:
            line = " ".join(
                [moment, level, event.replace(" ", "-"), *(f"{key}={shown(value)}" for key, value in facts.items())]
            )
        print(line, file=self._out, flush=True)


def shown(value: Any) -> str:
    """A value on one line; in quotes if that is needed to see where it ends.

    >>> shown("no"), shown("two words"), shown(3)
    ('no', '"two words"', '3')
    """
    text = str(value)
    plain = text and not any(c.isspace() or c in '"=' for c in text)
    return text if plain else json.dumps(text)
