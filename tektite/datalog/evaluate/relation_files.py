"""Relations in files: which file a directive names, in which format, and its facts read or written.

| IO | read and written | the file, if none is named |
|---|---|---|
| file | lines (`fact_files`) | NAME.facts, NAME.csv |
| jsonfile, json | JSON (`fact_stores`) | NAME.json |
| sqlite | a table of a database (`fact_stores`) | NAME.sqlite |
| stdout | written as Soufflé does | |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tektite.datalog.evaluate import fact_stores
from tektite.datalog.evaluate.fact_files import FileForm, form, lines, read_facts, sorted_facts, write_facts
from tektite.datalog.evaluate.record_files import as_in_files, as_json, from_files, from_json
from tektite.datalog.syntax import ir, statements
from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.values.types import Bool

KINDS = {"input": ("file", "json", "jsonfile", "sqlite"), "output": ("file", "json", "jsonfile", "sqlite", "stdout")}
ENDINGS = {"input": ".facts", "output": ".csv"}
HOLDS = "()"
"""The one line that a file has for a predicate without columns that holds."""


@dataclass(frozen=True)
class RelationFile:
    """A directive, with what is declared of its relation."""

    directive: statements.Directive
    declared: statements.Declaration | None
    structures: Mapping[str, statements.Structure]
    form: FileForm

    @property
    def kind(self) -> str:
        """The format: file, json, sqlite or stdout."""
        return self.directive.option("IO", "file").removesuffix("file") or "file"

    @property
    def objects(self) -> bool:
        """Whether facts are JSON objects, not lists."""
        return self.directive.option("format", "list") == "object"

    @property
    def without_columns(self) -> bool:
        """Whether the relation is declared without columns."""
        return self.declared is not None and self.declared.columns == ((ir.HOLDS_COLUMN, Bool),)

    def path(self, folder: Path) -> Path:
        """The file in a folder."""
        kind = self.directive.kind
        ending = {"json": ".json", "sqlite": ".sqlite"}.get(self.kind, ENDINGS[kind])
        name = self.directive.option("dbname", f"{self.directive.predicate}{ending}")
        return folder / self.directive.option("filename", name)

    def structure(self, column: str) -> str | None:
        """The structure of a column, if it has one."""
        if self.declared is None or not self.declared.structures:
            return None
        names = [name for name, _ in self.declared.columns]
        return self.declared.structures[names.index(column)] if column in names else None

    # ------------------------------------------------------------------ reading

    def read(self, folder: Path, schema: Schema) -> pa.Table:
        """The facts of the file."""
        path = self.path(folder)
        if self.kind == "json":
            return fact_stores.read_json(path, schema, lambda name, value: self._from_json(name, value, str(path)))
        if self.kind == "sqlite":
            return fact_stores.read_sqlite(
                path, self.directive.predicate, schema, lambda name, value: self._from_text(name, value, str(path))
            )
        if self.without_columns:
            return self._read_holds(path, schema)
        table = read_facts(path, schema, self.form)
        for at, name in enumerate(table.column_names):
            if self.structure(name) is not None:
                texts = table[name].to_pylist()
                found = [self._from_text(name, text, f"{path}:{n}") for n, text in enumerate(texts, start=1)]
                table = table.set_column(at, name, pa.array(found, pa.string()))
        return table

    def _read_holds(self, path: Path, schema: Schema) -> pa.Table:
        try:
            found = path.read_text(encoding="utf-8").split()
        except OSError as error:
            raise NotFoundError(f"cannot read the fact file {str(path)!r}: {error.strerror}") from None
        if any(line != HOLDS for line in found):
            raise IncorrectError(
                f"{path}: a predicate without columns has the line {HOLDS} if it holds, found {found[0]!r}"
            )
        return pa.table({schema.names[0]: pa.array([True] * bool(found), pa.bool_())})

    def _from_json(self, name: str, value: Any, where: str) -> Any:
        structure = self.structure(name)
        return value if structure is None else from_json(value, structure, self.structures, f"{where}: column {name!r}")

    def _from_text(self, name: str, value: Any, where: str) -> Any:
        structure = self.structure(name)
        if structure is None:
            return value
        return from_files(str(value), structure, self.structures, f"{where}: column {name!r}")

    # ------------------------------------------------------------------ writing

    def write(self, folder: Path, table: pa.Table, schema: Schema) -> None:
        """Write facts to the file."""
        path = self.path(folder)
        if self.kind == "json":
            fact_stores.write_json(path, table, self._rows(table, as_json), self.objects)
        elif self.kind == "sqlite":
            rows = self._rows(table, as_in_files)
            fact_stores.write_sqlite(path, self.directive.predicate, table, schema, rows)
        elif self.without_columns:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{HOLDS}\n" * table.num_rows, encoding="utf-8")
        else:
            write_facts(path, self._shown(table), self.form)

    def on_terminal(self, table: pa.Table) -> Iterator[str]:
        """The lines that Soufflé prints for IO=stdout."""
        yield "---------------"
        yield self.directive.predicate
        if self.form.headers:
            yield self.form.separator.join(table.column_names)
        yield "==============="
        if self.without_columns:
            yield from [HOLDS] * table.num_rows
        else:
            yield from lines(self._shown(table), self.form, exact=True)
        yield "==============="

    def _shown(self, table: pa.Table) -> pa.Table:
        """A table with records as files have them."""
        for at, name in enumerate(table.column_names):
            if self.structure(name) is not None:
                texts = [as_in_files(str(text)) for text in table[name].to_pylist()]
                table = table.set_column(at, name, pa.array(texts, pa.string()))
        return table

    def _rows(self, table: pa.Table, change: Any) -> Iterator[tuple[Any, ...]]:
        """Facts in order, with records changed."""
        columns = []
        for name, column in zip(table.column_names, sorted_facts(table).columns, strict=True):
            values = python_list(column)
            columns.append([change(v) for v in values] if self.structure(name) is not None else values)
        return zip(*columns, strict=True)


def relation_file(
    directive: statements.Directive,
    declared: statements.Declaration | None,
    structures: Mapping[str, statements.Structure],
) -> RelationFile:
    """The file that a directive names; refuses what it asks for and is not supported."""
    kind = directive.option("IO", "file")
    supported = KINDS.get(directive.kind, ("file",))
    where = f"{directive.position}: .{directive.kind} {directive.predicate}"
    if kind not in supported:
        raise UnsupportedError(f"{where} with IO={kind} is not supported; there is: {', '.join(supported)}")
    if directive.option("format", "list") not in ("list", "object"):
        raise IncorrectError(f"{where}: format is list or object, not {directive.option('format', '')!r}")
    return RelationFile(directive, declared, structures, form(directive, declared))
