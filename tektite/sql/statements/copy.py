"""COPY: tables from files and results to files, as CSV or Parquet."""

from __future__ import annotations

import csv as plain_csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv
from sqlglot import exp

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.bind.scope import folded
from tektite.sql.parse.places import StatementText, nearest
from tektite.sql.parse.read_arguments import refuse_unread, written
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
            raise source.error(message, tree.this.expressions[at], NotFoundError)
    if not path.exists():
        raise source.error(f"COPY: there is no file {str(path)!r}", files[0], NotFoundError)
    try:
        rows = read_parquet(path) if form == "parquet" else read_csv(path, found, listed, options)
    except (pa.ArrowInvalid, OSError) as error:
        where = bad_line(path, listed, options, str(error)) if form == "csv" else ""
        raise source.error(f"COPY {str(path)!r}{where}: {error}", files[0], IncorrectError) from None
    if form == "parquet":
        missing = [name for name in listed if name not in rows.column_names]
        more = [name for name in rows.column_names if name not in listed and named is None]
        if missing or more:
            said = f"no column {missing[0]!r}" if missing else f"a column {more[0]!r} that the table has not"
            message = f"COPY {str(path)!r}: the file has {said}: its columns are {', '.join(rows.column_names)}"
            raise source.error(message, files[0], NotFoundError)
        rows = rows.select(listed)
    table = arranged(runner, found, rows, listed)
    refuse_unread(source, tree)
    runner.write(found, table, None)
    return Result(f"COPY {table.num_rows}")


def read_options(source: StatementText, tree: exp.Copy) -> dict[str, str]:
    """The options behind WITH, by name."""
    found: dict[str, str] = {}
    for param in tree.args.get("params") or ():
        name = param.this.name.lower()
        if name not in OPTIONS:
            raise source.error(
                f"COPY: option {name.upper()} is not supported; there are: {', '.join(OPTIONS)}",
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


def read_csv(path: Path, table: Table, names: list[str], options: Mapping[str, str]) -> pa.Table:
    """A CSV file as rows of a table; empty fields that are not quoted are NULL."""
    kinds = {field.name: field.type for field in table.schema.arrow}
    if path.is_file() and path.stat().st_size == 0:
        return pa.schema([(name, kinds[name]) for name in names]).empty_table()
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(
            column_names=names, skip_rows=1 if options.get("header", "false") == "true" else 0
        ),
        parse_options=csv.ParseOptions(delimiter=options.get("delimiter", ",")),
        convert_options=csv.ConvertOptions(
            column_types={name: kinds[name] for name in names},
            null_values=[options.get("null", "")],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def bad_line(path: Path, names: list[str], options: Mapping[str, str], error: str) -> str:
    """Where a CSV file has what Arrow complains of, as text for messages; nothing if that is not found."""
    value = re.search(r"column #(\d+): .*invalid value '(.*)'", error, re.DOTALL)
    skip = 1 if options.get("header", "false") == "true" else 0
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            records = plain_csv.reader(file, delimiter=options.get("delimiter", ","))
            begins = 1
            for number, fields in enumerate(records):
                line, begins = begins, records.line_num + 1
                if number < skip or not fields:
                    continue
                if value is None:
                    is_bad = len(fields) != len(names)
                else:
                    is_bad = len(fields) > int(value[1]) and fields[int(value[1])] == value[2]
                if is_bad:
                    return f", line {line}"
    except (OSError, plain_csv.Error):
        return ""
    return ""


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

            parquet.write_table(rows, path)
        else:
            header = options.get("header", "false") == "true"
            csv.write_csv(rows, path, csv.WriteOptions(include_header=header, delimiter=options.get("delimiter", ",")))
    except OSError as error:
        raise source.error(f"COPY {str(path)!r}: {error}", tree.args["files"][0], IncorrectError) from None
    return Result(f"COPY {rows.num_rows}")
