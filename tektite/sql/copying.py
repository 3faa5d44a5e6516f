"""COPY: tables from files and results to files, as CSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv, parquet
from sqlglot import exp

from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.sql.result import Result
from tektite.sql.text import Source
from tektite.sql.writing import arranged, target

if TYPE_CHECKING:
    from tektite.inputs import Input
    from tektite.sql.session import Session

OPTIONS = ("format", "header", "delimiter", "null")


def copy(session: Session, source: Source, tree: exp.Copy, parameters: Mapping[str, Any]) -> Result:
    """COPY table FROM 'file' or COPY table or (query) TO 'file', WITH (FORMAT, HEADER, DELIMITER, NULL)."""
    options = read_options(source, tree)
    files = tree.args.get("files") or []
    if len(files) != 1 or not isinstance(files[0], exp.Literal) or not files[0].is_string:
        raise source.error("COPY needs one file, as 'path/to/file.csv'", tree, UnsupportedError)
    path = Path(files[0].this)
    form = options.get("format", "parquet" if path.suffix == ".parquet" else "csv")
    if form not in ("csv", "parquet"):
        raise source.error(f"COPY: the format is csv or parquet, not {form!r}", tree, UnsupportedError)
    if not tree.args.get("kind"):
        return copy_to(session, source, tree, path, form, options, parameters)
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    found = target(session, source, node)
    listed = [c.name for c in tree.this.expressions] if isinstance(tree.this, exp.Schema) else list(found.schema.names)
    if not path.exists():
        raise source.error(f"COPY: there is no file {str(path)!r}", files[0], NotFoundError)
    try:
        rows = parquet.read_table(path) if form == "parquet" else read_csv(path, found, listed, options)
    except (pa.ArrowInvalid, OSError) as error:
        raise source.error(f"COPY {str(path)!r}: {error}", files[0], IncorrectError) from None
    names = rows.column_names if form == "parquet" else listed
    table = arranged(found, rows, names)
    session.write(found, table, None)
    return Result(f"COPY {table.num_rows}")


def read_options(source: Source, tree: exp.Copy) -> dict[str, str]:
    """The options behind WITH, by name."""
    found: dict[str, str] = {}
    for param in tree.args.get("params") or ():
        name = param.this.name.lower()
        if name not in OPTIONS:
            raise source.error(
                f"COPY: option {name.upper()} is not supported; there are: {', '.join(OPTIONS)}", tree, UnsupportedError
            )
        value = param.args.get("expression")
        found[name] = "true" if value is None else value.name if name in ("delimiter", "null") else value.name.lower()
    return found


def read_csv(path: Path, table: Input, names: list[str], options: Mapping[str, str]) -> pa.Table:
    """A CSV file as rows of a table; empty fields that are not quoted are NULL."""
    kinds = {field.name: field.type for field in table.schema.arrow}
    for name in names:
        if name not in kinds:
            raise NotFoundError(f"COPY: table {table.name!r} has no column {name!r}")
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


def copy_to(
    session: Session, source: Source, tree: exp.Copy, path: Path, form: str, options: Mapping[str, str],
    parameters: Mapping[str, Any],
) -> Result:  # fmt: skip
    """Write a table's or a query's rows to a file."""
    query = tree.this
    if isinstance(query, exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=query))
    rows = session.select(source, query, parameters)
    if form == "parquet":
        parquet.write_table(rows, path)
    else:
        header = options.get("header", "false") == "true"
        csv.write_csv(rows, path, csv.WriteOptions(include_header=header, delimiter=options.get("delimiter", ",")))
    return Result(f"COPY {rows.num_rows}")
