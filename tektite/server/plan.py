"""Reads and checks the description of a server: a pipeline's, with a part `server` for addresses, users, epochs and limits.

Options of the command line count more than the description. A wrong word or value is an error that says where it is, before
anything is opened.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from tektite.errors import IncorrectError, NotFoundError, TektiteError
from tektite.pipeline import PipelinePlan, PlainReader, from_plain
from tektite.server.epochs import EpochPolicy
from tektite.sql.access.verifiers import Verifier

PORT = 5433
HTTP_PORT = 5434


@dataclass(frozen=True)
class Limits:
    """Limits of one server, connection or statement. 0 is no limit, where that makes sense."""

    connections: int = 500
    message_bytes: int = 64 << 20
    """The longest message that a client may send."""
    buffered_bytes: int = 4 << 20
    """Bytes that may wait to be sent to a client; beyond that, nothing more is made for it."""
    statement_seconds: float = 0
    startup_seconds: float = 10
    """Seconds that a client has for logging in."""
    idle_seconds: float = 0
    """Seconds that a client may be idle."""
    stop_seconds: float = 10
    """Seconds that statements have to end when the server stops."""
    threads: int = 8
    """Statements that are computed side by side."""
    lease_seconds: float = 30
    """Seconds for which delivered changes are held, so that a subscriber can resume; also the longest pause between its reads."""
    subscriptions: int = 1000
    """Subscriptions of one connection."""
    prepared: int = 1000
    """Prepared statements of one connection."""
    rows: int = 0
    """Rows that one statement may give, unless its user has another limit."""
    memory_bytes: int = 0
    """Bytes that one query may keep, unless its user has another limit."""
    queries: int = 0
    """Materialized views and subscriptions of one user, unless that has another limit."""


@dataclass(frozen=True)
class ServerPlan:
    """Everything that `tektite serve` needs."""

    pipeline: PipelinePlan
    address: str = "127.0.0.1"
    port: int = PORT
    http_port: int = HTTP_PORT
    epochs: EpochPolicy = EpochPolicy()
    certificate: str | None = None
    private_key: str | None = None
    users: Mapping[str, Verifier] = field(default_factory=dict)
    ordinary_users: frozenset[str] = frozenset()
    """Those of them who are no superusers."""
    limits: Limits = Limits()
    workers: int | None = None
    spans: bool = False
    """Whether OpenTelemetry gets spans of what it does."""

    @property
    def is_local(self) -> bool:
        """Whether it listens on loopback alone."""
        if self.address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Refuse what cannot work, or should not."""
        if not self.users and not self.is_local and self.pipeline.storage is None:
            raise IncorrectError(
                f"a server without users listens on loopback only, and this is to listen on {self.address}: name users, "
                "each with the verifier of a password (`tektite password` makes one), or take the address 127.0.0.1"
            )
        if (self.certificate is None) != (self.private_key is None):
            raise IncorrectError("TLS needs both: a certificate and its key")
        for file in (self.certificate, self.private_key):
            if file is not None and not Path(file).is_file():
                raise NotFoundError(f"there is no file {file}, which TLS needs")


def read_server(path: Path | None) -> ServerPlan:
    """The server that a file describes; without one, a server with defaults and no storage."""
    if path is None:
        return ServerPlan(from_plain({}, Path("server.yaml")))
    if not path.is_file():
        raise NotFoundError(f"there is no description {path}")
    try:
        plain = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise IncorrectError(f"{path} is not YAML: {error}") from None
    pipeline = from_plain(plain, path)
    reader = PlainReader(path)
    return _server(reader, pipeline, plain.get("server") or {})


def _server(reader: PlainReader, pipeline: PipelinePlan, plain: Any) -> ServerPlan:
    known = ("address", "port", "http_port", "epochs", "tls", "users", "limits", "workers", "spans")
    found = reader.mapping(plain, "server", known)
    tls = reader.mapping(found.get("tls") or {}, "server.tls", ("certificate", "key"))
    described = reader.named(found.get("users"), "server.users", lambda value, where: _user(reader, value, where))
    users = {name: verifier for name, (verifier, _) in described.items()}
    ordinary = frozenset(name for name, (_, is_super) in described.items() if not is_super)
    paths = {name: None if tls.get(name) is None else reader.path(tls[name]) for name in ("certificate", "key")}
    try:
        epochs = EpochPolicy.parse(found.get("epochs", "commit"))
    except TektiteError as error:
        raise reader.wrong("server.epochs", str(error)) from None
    return ServerPlan(
        pipeline, reader.text(found.get("address", "127.0.0.1"), "server.address") or "127.0.0.1",
        _port(reader, found.get("port", PORT), "server.port"),
        _port(reader, found.get("http_port", HTTP_PORT), "server.http_port"),
        epochs, paths["certificate"], paths["key"], users, ordinary, _limits(reader, found.get("limits") or {}),
        None if found.get("workers") is None else reader.positive(found["workers"], "server.workers"),
        reader.flag(found.get("spans", False), "server.spans"),
    )  # fmt: skip


def _port(reader: PlainReader, value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 65535:
        raise reader.wrong(where, f"expected a port from 0 (any that is free) to 65535, found {value!r}")
    return value


def _user(reader: PlainReader, value: Any, where: str) -> tuple[Verifier, bool]:
    """The verifier of a user's password, and whether the user may do everything."""
    plain = reader.mapping(value, where, ("password", "superuser"))
    is_super = plain.get("superuser", True)
    if not isinstance(is_super, bool):
        raise reader.wrong(f"{where}.superuser", f"expected true or false, found {is_super!r}")
    try:
        return Verifier.parse(str(plain.get("password"))), is_super
    except TektiteError as error:
        raise reader.wrong(f"{where}.password", str(error)) from None


def _limits(reader: PlainReader, value: Any) -> Limits:
    known = {each.name: each.type for each in fields(Limits)}
    plain = reader.mapping(value, "server.limits", tuple(known))
    for name, limit in plain.items():
        least = 0 if name.endswith("_seconds") else 1
        is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if not is_number or limit < least or (least and not isinstance(limit, int)):
            raise reader.wrong(f"server.limits.{name}", f"expected a number from {least} on, found {limit!r}")
    return Limits(**plain)
