"""Settings of a session: SET, SHOW and RESET.

A setting is free or fixed. A fixed one describes a fact and cannot be changed: a value that would be ignored is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr.zones import zone_named
from tektite.sql.catalog.schemas import DATABASE, DEFAULT, same_schema
from tektite.sql.parse.places import nearest
from tektite.sql.parse.transaction_modes import ISOLATION

if TYPE_CHECKING:
    from tektite.engine.session import Session

SERVER_VERSION = "15.0"
"""The version of PostgreSQL whose catalogs are shown, which tools choose their queries by."""


@dataclass(frozen=True)
class Setting:
    """A setting: its initial value, what it means, and which other values it takes (None: any).

    `spelled` is PostgreSQL's spelling, if it has capitals. Clients are told the values of `reported` settings. `served` ones
    have an effect only on a server, so without a server they are fixed.
    """

    value: str
    about: str
    values: tuple[str, ...] | None = None
    spelled: str = ""
    reported: bool = False
    served: bool = False


def _fixed(value: str, about: str, *others: str, spelled: str = "") -> Setting:
    return Setting(value, about, others, spelled)


def _reported(setting: Setting) -> Setting:
    return replace(setting, reported=True)


def _served(setting: Setting) -> Setting:
    return replace(setting, served=True)


WEAKER = ISOLATION[1:]
"""Levels that may be asked for: a transaction has at least the first of them."""


def _isolation(session: Session) -> str:
    opened = session.open_transaction
    return ISOLATION[0 if (session.serializable if opened is None else opened.reads is not None) else 1]


def _read_only(session: Session) -> str:
    opened = session.open_transaction
    return "on" if opened is not None and opened.read_only else "off"


TRANSACTION: dict[str, Callable[[Session], str]] = {
    "default_transaction_isolation": lambda session: ISOLATION[0 if session.serializable else 1],
    "transaction_isolation": _isolation,
    "transaction_read_only": _read_only,
}
"""Settings that say what a session's transaction is, or its next one."""
SETTINGS: dict[str, Setting] = {
    "application_name": _reported(Setting("", "The name of the program that is connected.")),
    "bytea_output": _fixed("hex", "How bytes are written."),
    "check_function_bodies": Setting("on", "Whether bodies of functions are checked; there are none."),
    "client_encoding": _reported(_fixed("UTF8", "The encoding of texts.", "utf-8", "unicode", "sql_ascii")),
    "client_min_messages": Setting("notice", "Which messages are sent."),
    "constraint_exclusion": Setting("partition", "Of partitions; there are none."),
    "datestyle": _reported(
        _fixed("ISO, MDY", "How dates are written.", "iso", "iso, dmy", "iso, ymd", spelled="DateStyle")
    ),
    "default_table_access_method": _fixed("heap", "How tables are stored."),
    "default_tablespace": _fixed("", "Where tables are stored."),
    "default_text_search_config": _fixed("pg_catalog.simple", "Of text search; there is none."),
    "default_transaction_deferrable": Setting("off", "Whether transactions may wait before they begin; none has to."),
    "default_transaction_isolation": _fixed("repeatable read", "What transactions see.", *WEAKER),
    "default_transaction_read_only": _reported(_fixed("off", "Whether transactions only read.")),
    "extra_float_digits": Setting("1", "How floats are written: always so that they can be read again."),
    "idle_in_transaction_session_timeout": _fixed("0", "How long a transaction may be idle; 0 is for ever.", "0ms", "0s"),
    "in_hot_standby": _reported(_fixed("off", "Whether this is a standby.")),
    "integer_datetimes": _reported(_fixed("on", "Whether times are whole numbers.")),
    "intervalstyle": _reported(_fixed("postgres", "How intervals are written.", spelled="IntervalStyle")),
    "is_superuser": _reported(_fixed("on", "Whether the user may do everything.")),
    "jit": Setting("off", "Of PostgreSQL's compiler; there is none."),
    "lc_collate": _fixed("C", "How texts are ordered."),
    "lc_ctype": _fixed("C", "How characters are classified."),
    "lock_timeout": Setting("0", "How long a statement waits for a lock; none ever does."),
    "max_identifier_length": _fixed("63", "How long names are that tools make up."),
    "max_index_keys": _fixed("32", "How many columns tools expect in an index."),
    "row_security": _fixed("on", "Whether policies on rows apply."),
    "search_path": Setting(DEFAULT, "The schemas in which a name without one is looked for."),
    "server_encoding": _reported(_fixed("UTF8", "The encoding of stored texts.")),
    "server_version": _reported(_fixed(SERVER_VERSION, "The version of PostgreSQL whose catalogs are shown.")),
    "server_version_num": _fixed("150000", "The same as a number."),
    "session_authorization": _reported(_fixed("tektite", "The user.")),
    "ssl": _fixed("off", "Whether the connection is encrypted."),
    "standard_conforming_strings": _reported(
        _fixed("on", "Whether a backslash is a character like others.", "true", "1", "yes")
    ),
    "statement_timeout": _served(Setting("0", "How long a statement may take; 0 is for ever.", ("0ms", "0s"))),
    "synchronize_seqscans": Setting("on", "Of PostgreSQL's storage."),
    "synchronous_commit": _served(Setting("on", "Whether a commit is durable when it is acknowledged.", ("true", "1", "yes"))),
    "timezone": _reported(
        _served(
            Setting("UTC", "The time zone by whose clocks moments are shown, and told.", None, "TimeZone")
        )
    ),
    "transaction_isolation": _fixed("repeatable read", "What the transaction sees.", *WEAKER),
    "transaction_read_only": _fixed("off", "Whether the transaction only reads."),
    "xmlbinary": _fixed("base64", "Of XML; there is none."),
}  # fmt: skip
"""Every setting, by name. A fixed one names further values that say the same."""
OTHER_NAMES = {
    "time zone": "timezone",
    "transaction isolation level": "transaction_isolation",
    "names": "client_encoding",
}
"""Settings that SHOW and SET have words for."""
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?")
SECONDS = {"us": 1e-6, "ms": 1e-3, None: 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass
class SessionSettings:
    """The settings of one session, and who its user is. `served` says whether a server runs the session's statements.

    Beside those of the table there can be settings of programs, whose names have a dot.
    """

    session: Session | None = None
    """The session of the engine that they are of."""
    user: str = "tektite"
    """The role whose rights statements have: SET ROLE changes it."""
    login: str = "tektite"
    """The role that the session belongs to."""
    is_trusted: bool = True
    """Whether it is of a program that holds the engine, or of a client that nobody asked who it is: it may do everything, until
    it takes a role.
    """
    database: str = DATABASE
    process: int = field(default_factory=os.getpid)
    changed: dict[str, str] = field(default_factory=dict)
    search_path: tuple[str, ...] = (DEFAULT,)
    served: bool = False
    is_super: Callable[[], bool] = lambda: True
    """Whether the user may do everything."""
    _initial: Mapping[str, str] = field(default_factory=dict)

    def begin(self, given: Mapping[str, str], **facts: str) -> None:
        """Begin a session on a server, with the settings that the client gives, and with facts that the server knows."""
        self.served = True
        for name, value in given.items():
            if name.lower() in SETTINGS or "." in name:
                self.set(name, listed(name, value))
        self.changed |= facts
        self._initial = dict(self.changed)

    def show(self, name: str) -> str:
        """The value of a setting."""
        known = self.known(name)
        if known == "session_authorization":
            return self.login
        if known == "is_superuser":
            return "on" if self.is_super() else "off"
        if known in TRANSACTION and self.session is not None:
            return TRANSACTION[known](self.session)
        return self.changed[known] if known in self.changed else SETTINGS[known].value

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        return self.show("timezone")

    def set(self, name: str, values: Sequence[str] | None) -> str:
        """Give a setting a value, or its initial value (None). Returns its name in the table."""
        known = name.lower() if "." in name else self.known(name)
        if values is None:
            if known in self._initial:
                self.changed[known] = self._initial[known]
            else:
                self.changed.pop(known, None)
        else:
            if known == "default_transaction_isolation" and ", ".join(values).lower() == ISOLATION[0] and self.session:
                self.session.serializable = True
            if known == "timezone":
                values = [zone_of(", ".join(values))]
            self._check(known, ", ".join(values))
            if known not in SETTINGS or SETTINGS[known].values is None or SETTINGS[known].served and self.served:
                self.changed[known] = ", ".join(values)
        if known == "search_path":
            path = self.changed.get(known, DEFAULT).split(", ")
            self.search_path = tuple(same_schema(v) for v in path if v not in ("", "$user"))
        return known

    def _check(self, known: str, value: str) -> None:
        """Refuse a value that a setting cannot have."""
        setting = SETTINGS.get(known)
        if setting is None or setting.values is None:
            return
        if setting.served and self.served:
            if known == "statement_timeout":
                seconds_of(value)
            return
        if value.lower() in (self.show(known).lower(), *setting.values):
            return
        if not setting.values:
            raise _with_state(
                UnsupportedError(f"{known} is always {self.show(known)!r}: it cannot be {value!r}"), "55P02"
            )
        also = f" (also written {', '.join(setting.values)})"
        raise _with_state(
            UnsupportedError(f"{known} is always {setting.value!r}{also}: it cannot be {value!r}"), "22023"
        )

    def reset(self) -> None:
        """Give every setting its initial value."""
        for name in list(self.changed):
            self.set(name, None)

    def known(self, name: str) -> str:
        """The name of a setting as the table has it."""
        wanted = OTHER_NAMES.get(name.lower(), name.lower())
        if wanted in SETTINGS or wanted in self.changed:
            return wanted
        raise _with_state(NotFoundError(f"there is no setting {name!r}: {nearest(wanted, SETTINGS)}"), "42704")

    def rows(self) -> list[tuple[str, str, str]]:
        """Every setting, as it is spelled, with its value and what it is."""
        return [(spelled(name), self.show(name), SETTINGS[name].about) for name in sorted(SETTINGS)]

    @property
    def statement_seconds(self) -> float:
        """`statement_timeout` in seconds; 0 is none."""
        return seconds_of(self.show("statement_timeout"))

    @property
    def waits_for_storage(self) -> bool:
        """Whether `synchronous_commit` is on."""
        return self.show("synchronous_commit").lower() not in ("off", "false", "0", "no")


def listed(name: str, text: str) -> list[str]:
    """The values in the text of a setting: schemas of a search path, or one.

    >>> listed("search_path", '"$user", public'), listed("application_name", "a, b")
    (['$user', 'public'], ['a, b'])
    """
    parts = text.split(",") if name.lower() == "search_path" else [text]
    return [part.strip(" '\"") for part in parts]


OFFSET = re.compile(
    r"(?:INTERVAL[\s,']*)?([+-]?)(\d{1,2}(?::\d\d)?)[\s,']*(?:HOUR(?:[\s,]+TO[\s,]+MINUTE)?)?", re.IGNORECASE
)
"""An offset from UTC as SET TIME ZONE takes it."""


def zone_of(text: str) -> str:
    """The time zone that SET names: by a name, an offset, or the interval that an offset is.

    >>> zone_of("Europe/Berlin"), zone_of("INTERVAL '-05:30' HOUR TO MINUTE"), zone_of("2")
    ('Europe/Berlin', '-05:30', '+02:00')
    """
    offset = OFFSET.fullmatch(text)
    if offset is not None:
        text = f"{offset[1] or '+'}{offset[2]}"
    try:
        return "UTC" if text.lower() == "local" else zone_named(text)
    except IncorrectError as error:
        raise _with_state(error, "22023") from None


def spelled(name: str) -> str:
    """A setting's name as PostgreSQL writes it."""
    return SETTINGS[name].spelled or name


def seconds_of(text: str) -> float:
    """A duration as PostgreSQL writes it, milliseconds where no unit is said.

    >>> seconds_of("1500"), seconds_of("2s"), seconds_of("1min")
    (1.5, 2.0, 60.0)
    """
    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise _with_state(IncorrectError(f"{text!r} is not a duration such as 500ms or 2s"), "22023")
    return float(found[1]) * SECONDS[found[2]]


def _with_state(error: TektiteError, state: str) -> TektiteError:
    error.details["sqlstate"] = state
    return error


def check_path(values: Sequence[str], is_schema: Callable[[str], bool]) -> None:
    """Refuse a search path that begins with no schema."""
    if not any(is_schema(same_schema(value)) for value in values):
        raise IncorrectError(f"search_path needs a schema that exists: {', '.join(values)!r} names none")
