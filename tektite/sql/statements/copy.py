"""COPY: tables from files and results to files, as CSV or Parquet."""

from __future__ import annotations

import csv as plain_csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv
from sqlglot import exp

from tektite.engine.core import core_of
from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.expr import file_columns
from tektite.sql.bind.scope import folded
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import refuse_unread, written
from tektite.sql.statements.csv_lines import bad_line, first_invalid, record_line, with_column
from tektite.sql.statements.result import Result
from tektite.sql.statements.table_writes import arranged, target

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.sql.statements.runner import StatementRunner

OPTIONS = ("format", "header", "delimiter", "null")


def copy(runner: StatementRunner, source: StatementText, tree: exp.Copy, parameters: Mapping[str, Any]) -> Result:
    """COPY table FROM 'file' or COPY table or (query) TO 'file', WITH (FORMAT, HEADER, DELIMITER, NULL)."""
    runner.access.check_super(
        runner.access.who(), "to COPY from and to files of the server; STDIN and STDOUT are the client's"
    )
    options = read_options(source, tree)
    files = tree.args.get("files") or []
    if len(files) != 1 or not isinstance(files[0], exp.Literal) or not files[0].is_string:
        raise source.error("COPY needs one file, as 'path/to/file.csv'", None, UnsupportedError)
    path = Path(files[0].this)
    known = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
    form = options.get("format", known.get(path.suffix, "csv"))
    if form not in ("csv", "parquet"):
        raise source.error(f"COPY: the format is csv or parquet, not {form!r}", source.where(form), UnsupportedError)
    if not tree.args.get("kind"):
        return copy_to(runner, source, tree, path, form, options, parameters)
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    found = target(runner, source, node)
    named = [folded(c) for c in tree.this.expressions] if isinstance(tree.this, exp.Schema) else None
    listed = list(found.schema.names) if named is None else named
    for at, name in enumerate(listed):
        if name not in found.schema.names:
            message = f"table {found.name!r} has no column {name!r}: {nearest(name, found.schema.names)}"
            raise source.error(message, tree.this.expressions[at], NotFoundError, condition="undefined-column")
    if not path.exists():
        raise source.error(f"COPY: there is no file {str(path)!r}", files[0], NotFoundError)
    layout = csv_layout(path, listed, options) if form == "csv" else CsvLayout(listed, False)
    try:
        rows = read_parquet(path) if form == "parquet" else read_csv(path, found, layout, options)
        rows = file_columns.typed(rows, found.schema, zone=runner.settings.zone)
    except (pa.ArrowInvalid, OSError) as error:
        where = line_of(path, layout, options, bad_line, len(listed), str(error)) if form == "csv" else ""
        why = with_column(str(error), layout.names)
        raise source.error(f"COPY {str(path)!r}{where}: {why}", files[0], IncorrectError) from None
    if form == "csv":
        try:
            check_csv(path, layout, found, rows, options)
        except IncorrectError as error:
            raise source.error(str(error), files[0], IncorrectError) from None
    else:
        missing = [name for name in listed if name not in rows.column_names]
        more = [name for name in rows.column_names if name not in listed and named is None]
        if missing or more:
            said = f"no column {missing[0]!r}" if missing else f"a column {more[0]!r} that the table has not"
            message = f"COPY {str(path)!r}: the file has {said}: its columns are {', '.join(rows.column_names)}"
            raise source.error(message, files[0], NotFoundError)
    rows = rows.select(listed)
    table = arranged(runner, found, rows, listed)
    refuse_unread(source, tree)
    return Result(f"COPY {table.num_rows}", time=runner.write(found, table, None))


def read_options(source: StatementText, tree: exp.Copy) -> dict[str, str]:
    """The options behind WITH, by name."""
    found: dict[str, str] = {}
    for param in tree.args.get("params") or ():
        name = param.this.name.lower()
        if name not in OPTIONS:
            known = ": write (FORMAT csv, HEADER)" if name == "csv" else f"; there are: {', '.join(OPTIONS)}"
            raise source.error(
                f"COPY: option {name.upper()} is not supported{known}",
                source.where(name),
                UnsupportedError,
            )
        value = param.args.get("expression")
        said = "true" if value is None else value.name or written(value)
        found[name] = said if name in ("delimiter", "null") else said.lower()
    if found.get("header", "false") not in ("true", "false"):
        raise source.error(f"COPY: HEADER is true or false, not {found['header']!r}", source.where("HEADER"))
    if len(found.get("delimiter", ",")) != 1:
        raise source.error(f"COPY: DELIMITER is one character, not {found['delimiter']!r}", source.where("DELIMITER"))
    return found


def read_parquet(path: Path) -> pa.Table:
    """A Parquet file as rows."""
    from pyarrow import parquet  # which takes longer to load than an engine

    return parquet.read_table(path)


@dataclass(frozen=True)
class CsvLayout:
    """The columns of a CSV file in its order, and whether a header stands before the rows."""

    names: list[str]
    has_header: bool


def csv_layout(path: Path, names: list[str], options: Mapping[str, str]) -> CsvLayout:
    """The layout of a file. A first line that holds the names of all the columns, in any order, is a header unless HEADER is
    false, and gives the order. Any other header is skipped: then columns are taken by position.
    """
    said = options.get("header")
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            first = next(plain_csv.reader(file, delimiter=options.get("delimiter", ",")), [])
    except (OSError, plain_csv.Error):
        first = []  # reading the file says what is wrong
    found = [name.removeprefix("\ufeff").strip().lower() for name in first]
    wanted = {name.lower(): name for name in names}
    if said != "false" and len(wanted) == len(names) and sorted(found) == sorted(wanted):
        return CsvLayout([wanted[name] for name in found], True)
    return CsvLayout(names, said == "true")


def read_csv(path: Path, table: Table, layout: CsvLayout, options: Mapping[str, str]) -> pa.Table:
    """A CSV file as rows of a table; empty fields that are not quoted are NULL."""
    kinds, names = file_columns.csv_types(table.schema), layout.names
    if path.is_file() and path.stat().st_size == 0:
        return pa.schema([(name, kinds[name]) for name in names]).empty_table()
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=names, skip_rows=int(layout.has_header)),
        parse_options=csv.ParseOptions(delimiter=options.get("delimiter", ",")),
        convert_options=csv.ConvertOptions(
            column_types={name: kinds[name] for name in names},
            null_values=[options.get("null", "")],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def line_of(
    path: Path, layout: CsvLayout, options: Mapping[str, str], find: Callable[..., int | None], *of: Any
) -> str:
    """The line that a function of `csv_lines` finds in a CSV file, as text for messages; empty if it finds none."""
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            line = find(file, *of, skip=int(layout.has_header), delimiter=options.get("delimiter", ","))
    except OSError:
        return ""
    return "" if line is None else f", line {line}"


def check_csv(path: Path, layout: CsvLayout, table: Table, rows: pa.Table, options: Mapping[str, str]) -> None:
    """Refuse rows of a CSV file that the table cannot have, and say in which line: a decimal that is too large, a NULL."""
    rules = core_of(table).rules
    required = {table.schema.names[column] for column in rules.required}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        bad: int | None = None
        if pa.types.is_decimal(column.type):
            bad = first_invalid(column)
            type = table.schema.types[table.schema.index(name)]
            why = f"column {name!r}: expected {type}, found a number with more digits"
        if bad is None and name in required and column.null_count:
            bad = column.is_null().index(True).as_py()
            why = f"column {name!r} of table {table.name!r} cannot be NULL"
        if bad is not None:
            raise IncorrectError(f"COPY {str(path)!r}{line_of(path, layout, options, record_line, bad)}: {why}").about(
                condition="not-null-violation"
            )


def copy_to(
    runner: StatementRunner, source: StatementText, tree: exp.Copy, path: Path, form: str, options: Mapping[str, str],
    parameters: Mapping[str, Any],
) -> Result:  # fmt: skip
    """Write a table's or a query's rows to a file."""
    query = tree.this
    if isinstance(query, exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
    if options.get("null"):
        raise source.error(
            "COPY ... TO with NULL is not supported: NULL is an empty field", source.where("NULL"), UnsupportedError
        )
    rows = runner.select(source, query, parameters)
    refuse_unread(source, tree)
    try:
        if form == "parquet":
            from pyarrow import parquet  # which takes longer to load than an engine

            parquet.write_table(file_columns.for_parquet(rows), path)
        else:
            header = options.get("header", "false") == "true"
            csv.write_csv(
                file_columns.for_csv(rows),
                path,
                csv.WriteOptions(include_header=header, delimiter=options.get("delimiter", ",")),
            )
    except OSError as error:
        raise source.error(f"COPY {str(path)!r}: {error}", tree.args["files"][0], IncorrectError) from None
    return Result(f"COPY {rows.num_rows}")
