"""EXPLAIN: how a query would be kept up to date, as lines of text or as one text of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from tektite.errors import UnsupportedError
from tektite.sql.access.access_control import PermissionDenied
from tektite.sql.parse.parser import Explain
from tektite.sql.statements import create
from tektite.sql.statements.disclosure import sees_below
from tektite.sql.statements.parametrised import parametrised
from tektite.sql.statements.result import Result

if TYPE_CHECKING:
    from tektite.sql.statements.runner import StatementRunner


def explain(runner: StatementRunner, statement: Explain, parameters: Mapping[str, Any]) -> Result:
    """The plan of a query, and what installing it would share and make. With ANALYZE, the query is answered once, and what its
    operators did follows.
    """
    source, tree = statement.source, statement.tree
    if statement.is_subscription:
        return _subscription(runner, statement, parameters)
    properties = tree.args.get("properties")
    joins, statement_tree = "auto", tree
    if isinstance(tree, exp.Create) and properties and properties.find(exp.MaterializedProperty):
        joins, _ = create.view_options(source, tree)
        tree = tree.expression
    if not isinstance(tree, exp.Query | exp.Values):
        raise source.error("EXPLAIN of anything but a query is not supported", None, UnsupportedError)
    is_view = joins != "auto" or isinstance(statement_tree, exp.Create)
    bind = runner.bind_standing if is_view else runner.bind
    planned = bind(source, tree, parameters)
    _check_plan(runner, planned.reads | planned.secured)
    collection = runner.collection(planned.joined_by(joins))
    explained = runner.engine.explain(collection)
    lines, data = explained.splitlines(), explained.data
    if statement.analyze:
        with runner.engine.profile() as profile:
            rows = runner.once(collection).num_rows
        lines += ["operators", *(f"  {line}" for line in str(profile).splitlines()), f"{rows} rows"]
        data = data | {"analyzed": {"rows": rows, "operators": [asdict(each) for each in profile.operators]}}
    return _result(statement, lines, data)


def _check_plan(runner: StatementRunner, tables: Iterable[str]) -> None:
    """Refuse to tell the plan of a query, with its sizes and constants, to somebody who may not read all rows below it."""
    names = sorted(tables)
    who = runner.access.who()
    if not (all([runner.access.sees_all(who, name) for name in names]) and sees_below(runner, who, names)):
        hidden = [name for name in names if runner.access.knows(who, name) and not runner.access.bypasses(who, name)]
        why = (
            f"policies of {', '.join(map(repr, hidden))} hide rows from" if hidden else "its views read what is not for"
        )
        raise PermissionDenied(
            f"permission denied: EXPLAIN tells sizes and constants of what a query reads, and {why} {who!r}"
        )


def _subscription(runner: StatementRunner, statement: Explain, parameters: Mapping[str, Any]) -> Result:
    """Explains how a subscription would be computed: for whom else at once, and by which plan."""
    query = parametrised(runner, statement.source, statement.tree, parameters)
    planned = runner.bind(statement.source, statement.tree, parameters)
    _check_plan(runner, planned.reads | planned.secured)
    sharing, explained = runner.shared.explain(query)
    return _result(statement, [*sharing, *explained.splitlines()], explained.data | {"sharing": sharing})


def _result(statement: Explain, lines: Sequence[str], data: dict[str, Any]) -> Result:
    return Result("EXPLAIN", pa.table({"plan": [json.dumps(data)] if statement.as_json else lines}))
