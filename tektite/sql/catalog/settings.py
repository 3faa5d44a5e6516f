"""Settings of a session: SET, SHOW and RESET.

A setting is free, or it says what is so anyway and can be set to nothing else: a value that would be ignored is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.catalog.schemas import DATABASE, DEFAULT, same_schema
from tektite.sql.parse.places import nearest

SERVER_VERSION = "15.0"
"""The version of PostgreSQL whose catalogs are shown, which tools choose their queries by."""


@dataclass(frozen=True)
class Setting:
    """A setting: its value to begin with, what it is, and which values it takes; any, if none are said."""

    value: str
    about: str
    values: tuple[str, ...] | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether nothing but its own value can be said."""
        return self.values == ()


def _fixed(value: str, about: str, *others: str) -> Setting:
    return Setting(value, about, others)


SETTINGS: dict[str, Setting] = {
    "application_name": Setting("", "The name of the program that is connected."),
    "bytea_output": _fixed("hex", "How bytes are written."),
    "check_function_bodies": Setting("on", "Whether bodies of functions are checked; there are none."),
    "client_encoding": _fixed("UTF8", "The encoding of texts.", "utf8", "utf-8", "unicode"),
    "client_min_messages": Setting("notice", "Which messages are sent."),
    "constraint_exclusion": Setting("partition", "Of partitions; there are none."),
    "datestyle": _fixed("ISO, MDY", "How dates are written.", "iso", "iso, dmy", "iso, ymd"),
    "default_table_access_method": _fixed("heap", "How tables are stored."),
    "default_tablespace": _fixed("", "Where tables are stored."),
    "default_text_search_config": _fixed("pg_catalog.simple", "Of text search; there is none."),
    "default_transaction_isolation": _fixed("repeatable read", "What transactions see.", "read committed",
                                            "read uncommitted"),
    "default_transaction_read_only": _fixed("off", "Whether transactions only read."),
    "extra_float_digits": Setting("1", "How floats are written: always so that they can be read again."),
    "in_hot_standby": _fixed("off", "Whether this is a standby."),
    "integer_datetimes": _fixed("on", "Whether times are whole numbers."),
    "intervalstyle": _fixed("postgres", "How intervals are written."),
    "is_superuser": _fixed("on", "Whether the user may do everything."),
    "jit": Setting("off", "Of PostgreSQL's compiler; there is none."),
    "max_identifier_length": _fixed("63", "How long names are that tools make up."),
    "max_index_keys": _fixed("32", "How many columns tools expect in an index."),
    "row_security": _fixed("on", "Whether policies on rows apply."),
    "search_path": Setting(DEFAULT, "The schemas in which a name without one is looked for."),
    "server_encoding": _fixed("UTF8", "The encoding of stored texts."),
    "server_version": _fixed(SERVER_VERSION, "The version of PostgreSQL whose catalogs are shown."),
    "server_version_num": _fixed("150000", "The same as a number."),
    "session_authorization": _fixed("tektite", "The user."),
    "standard_conforming_strings": _fixed("on", "Whether a backslash is a character like others.", "true", "1"),
    "synchronize_seqscans": Setting("on", "Of PostgreSQL's storage."),
    "timezone": _fixed("UTC", "The time zone of timestamps.", "utc", "gmt", "etc/utc", "default"),
    "transaction_isolation": _fixed("repeatable read", "What the transaction sees.", "read committed", "read uncommitted"),
    "transaction_read_only": _fixed("off", "Whether the transaction only reads."),
    "xmlbinary": _fixed("base64", "Of XML; there is none."),
}  # fmt: skip
"""Every setting, by name. A fixed one names further values that say the same."""
SPELLED = {"time zone": "timezone", "transaction isolation level": "transaction_isolation", "names": "client_encoding"}
"""Settings that SHOW and SET have words for."""
OFF = {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}
"""Limits of time that there are not: they can be set to 0."""
for _name in OFF:
    SETTINGS[_name] = _fixed("0", "How long something may take; 0 is for ever.", "0ms", "0s")


@dataclass
class SessionSettings:
    """The settings of one session, and who its user is."""

    user: str = "tektite"
    """Whose rights statements have: SET ROLE changes it."""
    login: str = "tektite"
    """Who the session belongs to."""
    is_trusted: bool = True
    """Whether it is of a program that holds the engine, or of a client that nobody asked who it is: it may do everything, until
    it takes a role.
    """
    database: str = DATABASE
    process: int = field(default_factory=os.getpid)
    changed: dict[str, str] = field(default_factory=dict)
    search_path: tuple[str, ...] = (DEFAULT,)

    def show(self, name: str) -> str:
        """The value of a setting."""
        known = self.known(name)
        return self.login if known == "session_authorization" else self.changed.get(known, SETTINGS[known].value)

    def set(self, name: str, values: Sequence[str] | None) -> None:
        """Give a setting a value, or, with None, the one that it began with."""
        known = self.known(name)
        setting = SETTINGS[known]
        if values is None:
            self.changed.pop(known, None)
            if known == "search_path":
                self.search_path = (DEFAULT,)
            return
        value = ", ".join(values)
        if known == "search_path":
            self.search_path = tuple(same_schema(v) for v in values if v not in ("", "$user"))
        elif setting.values is not None and value.lower() not in (setting.value.lower(), *setting.values):
            also = f" (also written {', '.join(setting.values)})" if setting.values else ""
            raise UnsupportedError(f"{known} is always {setting.value!r}{also}: it cannot be {value!r}")
        if setting.values is None:
            self.changed[known] = value

    def reset(self) -> None:
        """Let every setting be as it began."""
        self.changed.clear()
        self.search_path = (DEFAULT,)

    def known(self, name: str) -> str:
        """The name of a setting as the table has it."""
        wanted = SPELLED.get(name.lower(), name.lower())
        if wanted in SETTINGS:
            return wanted
        raise NotFoundError(f"there is no setting {name!r}: {nearest(wanted, SETTINGS)}")

    def rows(self) -> list[tuple[str, str, str]]:
        """Every setting with its value and what it is."""
        return [(name, self.show(name), SETTINGS[name].about) for name in sorted(SETTINGS)]


def check_path(values: Sequence[str], is_schema: Callable[[str], bool]) -> None:
    """Refuse a search path that begins with no schema."""
    if not any(is_schema(same_schema(value)) for value in values):
        raise IncorrectError(f"search_path needs a schema that exists: {', '.join(values)!r} names none")
