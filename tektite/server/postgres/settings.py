"""The parameters of a session (SET, SHOW, RESET): those that drivers send and read.

Most of them have one meaning here and are remembered only so that SHOW says what was set. `statement_timeout` and
`synchronous_commit` have an effect. One that would change what answers mean, such as another encoding, is refused.
"""

from __future__ import annotations

import re
from typing import Final

from tektite.errors import IncorrectError, NotFoundError
from tektite.expr.zones import zone_named

DEFAULTS: Final = {
    "server_version": "15.0",
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "is_superuser": "on",
    "session_authorization": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "application_name": "",
    "default_transaction_read_only": "off",
    "in_hot_standby": "off",
    "search_path": '"$user", public',
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "synchronous_commit": "on",
    "transaction_isolation": "serializable",
    "default_transaction_isolation": "serializable",
    "transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "bytea_output": "hex",
    "client_min_messages": "notice",
    "max_identifier_length": "63",
    "row_security": "on",
    "lc_collate": "C",
    "lc_ctype": "C",
    "jit": "off",
    "ssl": "off",
    "tektite_version": "",
}
REPORTED: Final = (
    "server_version", "server_encoding", "client_encoding", "is_superuser", "session_authorization", "DateStyle", "IntervalStyle",
    "TimeZone", "integer_datetimes", "standard_conforming_strings", "application_name", "default_transaction_read_only",
    "in_hot_standby",
)  # fmt: skip
"""Those that a client is told at the start and whenever they change."""
READ_ONLY: Final = {"server_version", "server_version_num", "server_encoding", "integer_datetimes", "is_superuser",
                    "in_hot_standby", "max_identifier_length", "lc_collate", "lc_ctype", "ssl", "tektite_version"}  # fmt: skip
FIXED: Final = {
    "client_encoding": {"utf8", "utf-8", "unicode", "sql_ascii"},
    "standard_conforming_strings": {"on", "true", "1", "yes"},
    "intervalstyle": {"postgres", "iso_8601", "sql_standard", "postgres_verbose"},
}
"""What may be said of a parameter that has one meaning."""
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?")
SECONDS = {"us": 1e-6, "ms": 1e-3, None: 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Settings:
    """The parameters of one session. Names are compared without case."""

    def __init__(self, given: dict[str, str]) -> None:
        self._names = {name.lower(): name for name in DEFAULTS}
        self._values = dict(DEFAULTS)
        for name, value in given.items():
            if name.lower() in self._names or "." in name:
                self.set(name, value, force=True)
        self._initial = dict(self._values)

    def show(self, name: str) -> str:
        """The value of a parameter."""
        known = self._names.get(name.lower())
        if known is None or known not in self._values:
            error = NotFoundError(f"there is no parameter {name!r}")
            error.details["sqlstate"] = "42704"
            raise error
        return self._values[known]

    def all(self) -> dict[str, str]:
        """Every parameter and its value."""
        return dict(sorted(self._values.items()))

    def set(self, name: str, value: str | None, force: bool = False) -> str:
        """Give a parameter a value, or its first one for None; the parameter's name as it is spelled."""
        lowered = name.lower()
        if lowered not in self._names and "." not in name:
            raise _wrong(f"there is no parameter {name!r}", "42704")
        known = self._names.setdefault(lowered, name)
        if value is None:
            value = self._initial.get(known, "")
        if known in READ_ONLY and not force and value != self._values[known]:
            raise _wrong(f"parameter {known!r} cannot be changed", "55P02")
        if lowered in FIXED and value.strip("'\" ").lower() not in FIXED[lowered]:
            raise _wrong(f"parameter {known!r} cannot be {value!r} here", "22023")
        if lowered == "timezone":
            value = value.strip("'\" ")
            value = "UTC" if value.lower() == "local" else zone_named(value)
        if lowered == "statement_timeout":
            seconds_of(value)
        self._values[known] = value if lowered != "client_encoding" else "UTF8"
        return known

    def reset(self) -> None:
        """Give every parameter its first value."""
        self._values = dict(self._initial)

    @property
    def statement_seconds(self) -> float:
        """`statement_timeout` in seconds; 0 is none."""
        return seconds_of(self._values["statement_timeout"])

    @property
    def waits_for_storage(self) -> bool:
        """Whether `synchronous_commit` is on."""
        return self._values["synchronous_commit"].lower() not in ("off", "false", "0", "no")


def seconds_of(text: str) -> float:
    """A duration as PostgreSQL writes it, milliseconds where no unit is said.

    >>> seconds_of("1500"), seconds_of("2s"), seconds_of("1min")
    (1.5, 2.0, 60.0)
    """
    found = DURATION.fullmatch(text.strip("'\" "))
    if found is None:
        raise _wrong(f"{text!r} is no length of time, such as 500ms or 2s", "22023")
    return float(found[1]) * SECONDS[found[2]]


def _wrong(message: str, state: str) -> IncorrectError:
    error = IncorrectError(message)
    error.details["sqlstate"] = state
    return error
