"""DurableCatalog: schemas, views, indexes, rules and attributes that clients have created come back when a server starts again
on its storage.

The statements are rows of a table that SQL does not show. One is written in the epoch after its statement has been run, and goes
with what it created. `restore` runs them in their order, each with the search path of its time. What cannot be brought back, such
as a view of a table that a program has dropped meanwhile, is logged, and its statement stays for the next start.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, TektiteError, UnsupportedError
from tektite.server.logs import Log
from tektite.sql import Result, runner
from tektite.sql.bind.named_relations import HIDDEN
from tektite.sql.parse import parser
from tektite.sql.parse.connector_statements import CreateConnector, DropConnector
from tektite.sql.statements.prepared_names import OF
from tektite.values import types
from tektite.values.type_names import as_type

if TYPE_CHECKING:
    from tektite.datalog.evaluate.program import Program
    from tektite.engine.engine import Engine

T = TypeVar("T")

NAME = f"{HIDDEN}catalog"
COLUMNS = {"object": types.String, "number": types.Int, "search_path": types.String, "statement": types.String}
DEFINITIONS = (exp.Create, exp.Drop)
STORED = (parser.Plain, parser.Prepare, parser.Deallocate, CreateConnector, DropConnector)
"""Statements that may define something."""
StatementEntry = tuple[str, int, str, str]
LINEAGE = "lineage"
"""The entry that tells this storage's times from those of another one."""
UNNAMED = "program #"
"""What the key of rules begins with that a client registered without a name; a digest of their text follows."""


def source_of(key: str) -> str:
    """The name of rules in errors.

    >>> source_of("mine"), source_of("program #1f")
    ('mine', 'program')
    """
    return "program" if key.startswith(UNNAMED) else key


class OwnObjects:
    """The objects that a call has made, though it has released the engine's lock in between: those that were not there when it
    got the lock, and were there when it released it.
    """

    def __init__(self, objects: Callable[[], dict[str, Any]]) -> None:
        self._objects = objects
        self._found: dict[str, Any] = {}
        self.begin()

    def begin(self) -> None:
        """A stretch begins."""
        self._before = self._objects()

    def end(self) -> None:
        """A stretch ends."""
        after = self._objects()
        self._found |= {name: one for name, one in after.items() if self._before.get(name) is not one}

    @property
    def made(self) -> list[str]:
        """The names of what was made and is there."""
        there = self._objects()
        return [name for name, one in self._found.items() if there.get(name) is one]


class DurableCatalog:
    """The statements that made what an engine with a storage has beside tables; none, if they are not to be kept."""

    def __init__(self, engine: Engine, log: Log, is_kept: bool = True) -> None:
        self._engine = engine
        self._core = core_of(engine)
        self._log = log
        self._runner = runner(engine)
        self._entries: dict[str, StatementEntry] = {}
        self._number = 0
        self._programs: dict[str, tuple[Program, str]] = {}
        """Registered rules by name, with their texts."""
        self._failed: set[str] = set()
        """The names of what could not be restored."""
        self._table = None
        if is_kept and self._core.storage is not None:
            self._table = engine.create_table(NAME, COLUMNS, mode="upsert", primary_key="object", if_exists="keep")

    def restore(self) -> None:
        """Run the statements that are stored."""
        if self._table is None:
            return
        self._entries = {row[0]: row for row in self._table.rows()}
        self._number = max((row[1] for row in self._entries.values()), default=0)
        for object, _, path, text in sorted(self._entries.values(), key=lambda row: row[1]):
            try:
                with self._engine.session() as session, self._runner.access.restoring():
                    settings = self._runner.settings_of(session)
                    path, _, zone = path.partition("\n")
                    settings.search_path = tuple(path.split(","))
                    if zone:
                        settings.changed["timezone"] = zone
                    kind, _, name = object.partition(" ")
                    owner = self._runner.access.owner(f"table {name}") if kind == "view" else None
                    if kind == "prepared" and OF in name:
                        owner = name.partition(OF)[2]
                    settings.user = settings.login if owner is None else owner
                    self._restore(object, text)
            except TektiteError as error:
                self._failed.add(object)
                self._log.error("could not be brought back", object=object, statement=text, error=error)

    def _restore(self, object: str, text: str) -> None:
        kind, _, name = object.partition(" ")
        if kind == "rules":
            self._programs[name] = self._engine.datalog(text, source=source_of(name)), text
        elif kind == "attribute":
            self._declare(json.loads(text))
        elif kind == "schema":
            self._runner.schemas.add(name)  # tables of it may be there already, and imply it
        elif object != LINEAGE and object not in self._objects():
            self._engine.sql(text)

    def lineage(self) -> str:
        """An identifier of the storage that distinguishes its times from others'. Without a storage, one of this run."""
        with self._core.lock.held:
            self._core.lock.roll_forward()
            if self._table is None:
                return secrets.token_hex(8)
            if LINEAGE not in self._entries:
                self._write([], [(LINEAGE, 0, "", secrets.token_hex(8))])
            return self._entries[LINEAGE][3]

    def register(self, text: str, name: str | None = None) -> list[str]:
        """Register rules of Datalog; their predicates. Under a name they take the place of those that have it. Without a name
        they are added to what is there, or take the place of such a text that gives one of their predicates another meaning.
        The caller holds the lock.
        """
        key = f"{UNNAMED}{hashlib.sha256(text.encode()).hexdigest()[:16]}" if name is None else name
        before = self._programs.get(key)
        if name is None and before is not None:
            return list(before[0].predicates)
        try:
            made = self._engine.datalog(text, source=source_of(key))
        except ConflictError as error:
            made = self._replaced(key, text, error)
        else:
            if before is not None:
                before[0].drop()
        self._programs[key] = made, text
        self._remember(f"rules {key}", text)
        return list(made.predicates)

    def _replaced(self, key: str, text: str, error: ConflictError) -> Program:
        """Rules in place of others of the same predicates, which no view may need. If they are refused, the others stay."""
        if not key.startswith(UNNAMED):
            place = key if key in self._programs else None
        else:
            said = {
                other: [p for p in made.predicates if f"{p!r} is registered with another meaning" in str(error)]
                for other, (made, _) in self._programs.items()
            }
            place = next((other for other in said if other.startswith(UNNAMED) and said[other]), None)
        if place is None:
            raise error
        before, old = self._programs[place]
        before.drop()
        try:
            made = self._engine.datalog(text, source=source_of(key))
        except TektiteError:
            self._programs[place] = self._engine.datalog(old, source=source_of(place)), old
            raise
        if place != key:
            del self._programs[place]
            self._write([row for name, row in self._entries.items() if name == f"rules {place}"], [])
        return made

    def attribute(self, said: Mapping[str, Any]) -> None:
        """Declare an attribute. The caller holds the lock."""
        self._declare(said)
        self._remember(f"attribute {said['name']}", json.dumps(said))

    def _declare(self, said: Mapping[str, Any]) -> None:
        kind = None if said["type"] is None else as_type(said["type"], "type: ")
        options = {"cardinality": said["cardinality"], "mode": said["mode"]}
        self._engine.attribute(said["name"], kind, entity=as_type(said["entity"], "entity: "), **options)

    def _remember(self, object: str, text: str) -> None:
        """Store the text that makes something again, in place of the one before."""
        if self._table is None:
            return
        gone = [row for name, row in self._entries.items() if name == object]
        self._number += 1
        self._write(gone, [(object, self._number, self._settings(), text)])

    def _settings(self) -> str:
        """The settings that a statement's meaning depends on: the search path, and the time zone if that is not UTC."""
        settings = self._runner.settings
        path = ",".join(settings.search_path)
        return path if settings.zone == "UTC" else f"{path}\n{settings.zone}"

    def check_can_store(self, why: str) -> None:
        """Refuse a definition that a statement cannot say, where definitions are stored."""
        if self._table is not None:
            raise UnsupportedError(f"a definition is stored as it is written: {why}")

    def recorded(self, text: str, make: Callable[[], T]) -> T:
        """Let a function make or drop something, and store the statement that makes it again. The caller holds the lock."""
        if self._table is None:
            return make()
        stretches, mine = self._core.lock.stretches, OwnObjects(self._objects)
        with self._runner.access.dropping_later():
            stretches.ended, stretches.begun = mine.end, mine.begin
            try:
                found = make()
            except BaseException:
                self._store(text, [], self._objects())  # some of it may be gone
                raise
            finally:
                stretches.ended = stretches.begun = None
            mine.end()
            self._store(text, mine.made, self._objects())
            return found

    def run(self, statement: parser.Statement, values: Mapping[str, Any]) -> Result:
        """Run a statement in the session of the caller, who holds the engine's lock, and store it if it defines something."""
        if (
            self._table is None
            or not isinstance(statement, STORED)
            or (isinstance(statement, parser.Plain) and not isinstance(statement.tree, DEFINITIONS))
        ):
            return self._runner.run_kept(statement, values)
        if (
            values
            and isinstance(statement, parser.Plain)
            and isinstance(statement.tree, exp.Create)
            and statement.tree.args.get("kind") == "VIEW"
        ):
            raise statement.source.error(
                "a definition is stored as it is written, so it has no parameters: write the values into it",
                None,
                UnsupportedError,
            )
        return self.recorded(statement.source.statement, lambda: self._runner.run_kept(statement, values))

    def _objects(self) -> dict[str, Any]:
        """Everything beside tables, by kind and name."""
        sql, core = self._runner, self._core
        found: dict[str, Any] = {f"schema {name}": name for name in sorted(sql.schemas)}
        found |= {f"view {name}": one for name, one in core.views.items() if not name.startswith(HIDDEN)}
        found |= {f"view {name}": one for name, one in sql.definitions.items()}
        found |= {f"prepared {name}": one for name, one in sql.prepared.items()}
        found |= {} if sql.connectors is None else sql.connectors.all
        return found | {f"index {name}": one for name, one in sql.indexes.items()}

    def _store(self, text: str, made: list[str], there: Mapping[str, Any]) -> None:
        """Write the rows of what was made, and remove those of what is gone."""
        assert self._table is not None
        path = self._settings()
        gone = [
            row
            for name, row in self._entries.items()
            if name in made or self._is_gone(name, there) and name not in self._failed
        ]
        new: list[StatementEntry] = []
        for name in made:
            self._number += 1
            new.append((name, self._number, path, text))
        self._write(gone, new)

    def _is_gone(self, object: str, there: Mapping[str, Any]) -> bool:
        """Whether something that was created is gone."""
        kind, _, name = object.partition(" ")
        if kind == "attribute":
            return name.removeprefix(":") not in self._core.inputs
        return kind in ("schema", "view", "index", "prepared", "source", "sink") and object not in there

    def _write(self, gone: list[StatementEntry], new: list[StatementEntry]) -> None:
        """Store entries in place of others, in an epoch of their own."""
        if not gone and not new:
            return
        assert self._table is not None
        source, writes = core_of(self._table), WriteSet()
        if gone:
            source.write(gone, None, -1, "remove", writes)
        if new:
            source.write(new, None, 1, "insert", writes)
        with self._core.lock.undisturbed:  # nobody writes others in between
            self._core.commit(writes)
        for row in gone:
            del self._entries[row[0]]
            self._failed.discard(row[0])
        self._entries |= {row[0]: row for row in new}
