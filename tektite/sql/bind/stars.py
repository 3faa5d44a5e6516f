"""`*` and COLUMNS: the columns that an item of SELECT stands for.

`*` may leave columns out, replace and rename them, and choose them by a pattern. COLUMNS in an expression stands for the
expression once for each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tektite.errors import NotFoundError
from tektite.sql.bind.scope import UNIQUE, NameScope, folded
from tektite.sql.parse.places import nearest
from tektite.sql.parse.read_arguments import copied, read_whole, written

if TYPE_CHECKING:
    from tektite.sql.bind.query import Binder

CHOOSING = (exp.Like, exp.ILike, exp.SimilarTo, exp.Not)


def star_of(item: exp.Expr) -> exp.Expr | None:
    """The * that an item of SELECT is: alone, of a table, or with a pattern behind it; None if it is something else."""
    if isinstance(item, exp.Not):
        return star_of(item.this) if isinstance(item.this, CHOOSING) else None
    if isinstance(item, exp.Like | exp.ILike | exp.SimilarTo):
        return star_of(item.this)
    if isinstance(item, exp.Star):
        return item
    return item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else None


def pattern_of(binder: Binder, item: exp.Expr, star: exp.Star) -> str | None:
    """The regular expression that the whole names of columns must match."""
    ilike = star.args.get("ilike")
    kind, tree = (exp.ILike, ilike) if ilike is not None else (type(item), item.args.get("expression"))
    if ilike is None and not isinstance(item, CHOOSING):
        return None
    if not isinstance(tree, exp.Literal) or not tree.is_string:
        raise binder.source.error("the names of columns are compared with a constant text", item)
    text = tree.this
    if kind is not exp.SimilarTo:
        text = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in text)
    return rf"{'(?i)' if kind is exp.ILike else ''}\A(?:{text})\z"


def matching(binder: Binder, names: list[str], pattern: str, node: exp.Expr) -> list[bool]:
    """For each name, whether a regular expression matches in it. Arrow matches in linear time, which `re` does not."""
    try:
        found = pc.match_substring_regex(pa.array(names, pa.string()), pattern).to_pylist()
    except pa.ArrowInvalid as error:
        message = str(error).replace("Invalid regular expression", "invalid regular expression")
        raise binder.source.error(message, node) from None
    return [bool(matches) for matches in found]


def items(binder: Binder, scope: NameScope, item: exp.Expr) -> Iterator[tuple[str | None, exp.Expr | str]]:
    """The columns that an item of SELECT stands for: visible names with unique columns or with expressions; the name is None
    where the expression says it.
    """
    star = star_of(item)
    if star is None:
        chosen = item.find(exp.Columns)
        if chosen is None:
            yield None, item
        else:
            yield from of_each_column(binder, scope, item, chosen)
        return
    choosing = item.this if isinstance(item, exp.Not) else item
    negated = isinstance(item, exp.Not) or bool(choosing.args.get("negate"))
    holder = choosing.this if isinstance(choosing, CHOOSING) else choosing
    table = folded(holder.args.get("table")) if isinstance(holder, exp.Column) else ""
    schema = folded(holder.args.get("db")) if isinstance(holder, exp.Column) else ""
    assert isinstance(star, exp.Star)
    found = expand(binder, scope, star, table, item, schema)
    pattern = pattern_of(binder, choosing, star)
    if pattern is not None:
        matches = matching(binder, [name for name, _ in found], pattern, item)
        found = [pair for pair, is_chosen in zip(found, matches, strict=True) if is_chosen != negated]
        if not found:
            raise binder.source.error("no column of * matches", item)
    for alias in star.args.get("replace") or ():
        if not isinstance(alias, exp.Alias):
            raise binder.source.syntax_error("REPLACE takes pairs, as in * REPLACE (a + 1 AS a)", item)
    replaced = {folded(alias.args["alias"]): alias.this for alias in star.args.get("replace") or ()}
    for alias in star.args.get("rename") or ():
        if not isinstance(alias, exp.Alias) or not isinstance(alias.this, exp.Column):
            raise binder.source.syntax_error("RENAME takes pairs, as in * RENAME (a AS b)", item)
    renamed = {folded(alias.this.this): folded(alias.args["alias"]) for alias in star.args.get("rename") or ()}
    for what, names in (("REPLACE", replaced), ("RENAME", renamed)):
        for name in names:
            if name not in {visible for visible, _ in found}:
                hint = nearest(name, [visible for visible, _ in found])
                raise binder.source.error(
                    f"{what}: there is no column {name!r}: {hint}", item, NotFoundError, condition="undefined-column"
                )
    for visible, unique in found:
        yield renamed.get(visible, visible), replaced.get(visible, unique)


def of_each_column(
    binder: Binder, scope: NameScope, item: exp.Expr, chosen: exp.Expr
) -> Iterator[tuple[str | None, exp.Expr | str]]:
    """An expression once for each column that the COLUMNS in it stands for."""
    said = chosen.this
    if isinstance(said, exp.Star):
        found = expand(binder, scope, said, "", item)
    elif isinstance(said, exp.Literal) and said.is_string:
        found = expand(binder, scope, exp.Star(), "", item)
        matches = matching(binder, [name for name, _ in found], said.this, item)
        found = [pair for pair, is_chosen in zip(found, matches, strict=True) if is_chosen]
    else:
        raise binder.unsupported("COLUMNS of anything but * or a constant text", item)
    if not found:
        raise binder.source.error("no column matches COLUMNS", item)
    wanted = written(chosen.this)
    for visible, unique in found:
        one = copied(item)
        for place in list(one.find_all(exp.Columns)):
            read_whole(place)
            if written(place.this) != wanted:
                raise binder.unsupported("COLUMNS of different columns in one expression", item)
            column = exp.Column(this=exp.to_identifier(visible, quoted=True))
            column.meta[UNIQUE] = unique
            if place is one:
                one = column
            else:
                place.replace(column)
        title = visible if not isinstance(one, exp.Alias) else None
        yield title, unique if isinstance(one, exp.Column) and UNIQUE in one.meta else one


def expand(
    binder: Binder, scope: NameScope, star: exp.Star, table: str, node: exp.Expr, schema: str = ""
) -> list[tuple[str, str]]:
    """The columns that * stands for, as (visible, unique)."""
    if not scope.relations:
        raise binder.source.error("* needs a FROM", node)
    found: list[tuple[str, str]] = []
    if table:
        relations = [r for r in scope.relations if r.is_called(table, schema)]
        if not relations:
            hint = nearest(table, [r.alias for r in scope.relations])
            raise binder.source.error(
                f"there is no table {table!r} in FROM: {hint}", node, NotFoundError, condition="undefined-table"
            )
        found = [pair for r in relations for pair in r.columns]
    else:
        seen: set[str] = set()
        for relation in scope.relations:
            for visible, unique in relation.columns:
                merged = relation.hidden.get(visible.lower())
                if merged is None:
                    found.append((visible, unique))
                elif merged not in seen:
                    found.append((visible, merged))
                    seen.add(merged)
    left_out = {folded(c.this if isinstance(c, exp.Column) else c) for c in star.args.get("except_") or ()}
    unknown = left_out - {visible for visible, _ in found}
    if unknown:
        name = sorted(unknown)[0]
        raise binder.source.error(
            f"EXCLUDE: there is no column {name!r}: {nearest(name, [v for v, _ in found])}",
            node,
            condition="undefined-column",
        )
    if len(left_out) and all(visible in left_out for visible, _ in found):
        raise binder.source.error("EXCLUDE leaves no column of *", node, condition="undefined-column")
    return [pair for pair in found if pair[0] not in left_out]
