"""Translates PostgreSQL's spellings to those of sqlglot's DuckDB dialect, before and after parsing.

* `pg_catalog.` before a function, a type or in `OPERATOR(pg_catalog.~)` says what is meant anyway.
* `COLLATE pg_catalog.default` is the order that texts have.
* `E'\\n'` is a text with escapes.
* `ARRAY(query)` is an aggregate of the query's values. In queries of the system catalogs it and `array_agg(x)` are arrays of
  PostgreSQL, which are texts in braces; elsewhere they are lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

SCHEMAS = ("PG_CATALOG", "INFORMATION_SCHEMA")
"""Schemas whose functions and types are known without them."""
COLLATIONS = ("DEFAULT", "C", "POSIX", "UCS_BASIC")
"""Names of the one order that texts have, by their characters' numbers."""
BEFORE_TABLES = ("TABLE", "INTO", "VIEW", "EXISTS", "ON")
"""Words behind which a name with a parenthesis is that of a table."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
QUANTIFIERS: dict[str, type[exp.Expr]] = {"ALL": exp.All, "ANY": exp.Any, "SOME": exp.Any}
ARRAY_OF = "array_of_text"
"""The function that makes an array of the texts of its elements."""
ONE_COLUMN = "one column"
"""Under which the alias of ARRAY's query notes that it names all columns: one, and those of its order."""
ELEMENT = "array_element"
"""The function that makes the text of an element."""


def spelt(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of a statement as the DuckDB dialect reads them."""
    if not any(token.text.upper() in (*SCHEMAS, "COLLATE", "OPERATOR", "E") or _is_escaped(token) for token in tokens):
        return tokens
    return list(_escaped(_collated(list(_unqualified(tokens))), text))


def _unqualified(tokens: list[Token]) -> Iterator[Token]:
    """Without pg_catalog before functions, types and operators."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        words = [t.text.upper() for t in tokens[at : at + 5]]
        if words[:2] == ["OPERATOR", "("] and len(words) == 5 and words[3] == ".":
            yield tokens[at + 4]  # OPERATOR(pg_catalog.~)
            at += 6
            continue
        before = tokens[at - 1] if at else None
        if words[0] in SCHEMAS and words[1:2] == ["."] and token.token_type != TokenType.STRING:
            cast = before is not None and before.token_type == TokenType.DCOLON
            called = words[3:4] == ["("] and (before is None or before.text.upper() not in BEFORE_TABLES)
            typed = before is not None and before.text.upper() == "AS" and words[3:4] in ([")"], ["["])
            if cast or called or typed:
                at += 2
                continue
        yield token
        at += 1


def _collated(tokens: list[Token]) -> list[Token]:
    """Without COLLATE of the order that texts have."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        words = [t.text.upper() for t in tokens[at : at + 4]]
        if words[0] == "COLLATE" and words[1:3] == ["PG_CATALOG", "."] and words[3:4] and words[3] in COLLATIONS:
            at += 4
        elif words[0] == "COLLATE" and words[1:2] and words[1] in COLLATIONS:
            at += 2
        else:
            found.append(tokens[at])
            at += 1
    return found


def _is_escaped(token: Token) -> bool:
    return token.token_type == TokenType.BYTE_STRING


def _escaped(tokens: list[Token], text: str) -> Iterator[Token]:
    """With E'...' as the text that it means."""
    for token in tokens:
        if not _is_escaped(token):
            yield token
            continue
        written = text[token.start : token.end + 1]
        inner = written[written.index("'") + 1 : -1].replace("''", "'")
        meant = re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), inner)
        yield Token(TokenType.STRING, meant, token.line, token.col, token.start, token.end)


def arrays_spelt(tree: exp.Expr) -> exp.Expr:
    """A tree with ARRAY(query) as an aggregate, and in queries of the catalogs with arrays as texts."""
    found: list[exp.Expr] = list(tree.find_all(exp.Anonymous, exp.ArrayAgg, exp.Array))
    of_catalogs = bool(found) and any(map(is_catalog, tree.find_all(exp.Table)))
    for node in reversed(found):  # those inside others first
        made = array_spelt(node, of_catalogs)
        if made is not None:
            made.meta.update(node.meta)
            tree = made if node is tree else tree
            node.replace(made)
    return tree


def is_catalog(table: exp.Table) -> bool:
    """Whether a table is one of the system catalogs."""
    schema = table.args.get("db")
    named = schema.name.upper() in SCHEMAS if isinstance(schema, exp.Identifier) else False
    return named or isinstance(table.this, exp.Identifier) and table.this.name.lower().startswith("pg_")


def array_spelt(node: exp.Expr, of_catalogs: bool) -> exp.Expr | None:
    """The tree that replaces a call or an array; None if it stays as it is."""
    if isinstance(node, exp.Anonymous):
        # sqlglot takes ALL (array) for a call where no query stands in it
        quantifier = QUANTIFIERS.get(node.name.upper())
        if quantifier is None or len(node.expressions) != 1 or not isinstance(node.parent, exp.Binary):
            return None
        return quantifier(this=exp.Paren(this=node.expressions[0].copy()))
    if isinstance(node, exp.ArrayAgg):
        if not of_catalogs:
            return None
        given = node.this
        order = given.expressions if isinstance(given, exp.Order) else []
        value = given.this if isinstance(given, exp.Order) else given
        if isinstance(value, exp.Distinct) or isinstance(node.parent, exp.Window | exp.Filter | exp.WithinGroup):
            return None
        return array_of(value.copy(), [part.copy() for part in order])
    if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Query):
        return None
    rows = node.expressions[0].copy()
    order, columns = order_of_rows(rows)
    alias = exp.TableAlias(this=exp.to_identifier("elements"), columns=[exp.to_identifier(name) for name in columns])
    alias.meta[ONE_COLUMN] = True
    element = exp.column(columns[0])
    if of_catalogs:
        whole = array_of(element, order)
    else:
        whole = exp.ArrayAgg(this=exp.Order(this=element, expressions=order) if order else element)
    nothing = exp.Literal.string("{}") if of_catalogs else exp.Array(expressions=[])
    query = exp.Select(
        expressions=[exp.Coalesce(this=whole, expressions=[nothing])],
        from_=exp.From(this=exp.Subquery(this=rows, alias=alias)),
    )
    if not of_catalogs:
        return exp.Subquery(this=query)
    return exp.Anonymous(this=ARRAY_OF, expressions=[exp.Subquery(this=query)])


def order_of_rows(query: exp.Expr) -> tuple[list[exp.Expr], list[str]]:
    """The ORDER BY of a query of one column, in terms of what it gives, and the names of what it gives. What it orders by and
    does not give becomes a column of its own.
    """
    columns = ["element"]
    found = query
    while isinstance(found, exp.Subquery | exp.Paren) and found.args.get("order") is None:
        found = found.this
    clause = found.args.get("order")
    if clause is None:
        return [], columns
    given = found.expressions[0] if isinstance(found, exp.Select) and len(found.expressions) == 1 else None
    order = []
    for part in clause.expressions:
        by = part.this
        is_given = by.is_int and by.name == "1" or given is not None and by in (given, given.unalias())
        if not is_given and given is not None and isinstance(by, exp.Column) and not by.table:
            is_given = by.name.lower() == given.alias_or_name.lower() or given.is_star
        if not is_given and (given is None or found.args.get("distinct") is not None):
            is_given = isinstance(
                by, exp.Column
            )  # the one column, by its name: all that such a query can be ordered by
        if not is_given:
            columns.append(f"order {len(columns)}")
            found.append("expressions", exp.alias_(by.copy(), columns[-1], quoted=True))
        moved = part.copy()
        moved.set("this", exp.column(columns[0] if is_given else columns[-1], quoted=not is_given))
        order.append(moved)
    return order, columns


def array_of(value: exp.Expr, order: list[exp.Expr]) -> exp.Expr:
    """The text of an array of values, in an order."""
    element: exp.Expr = exp.Anonymous(this=ELEMENT, expressions=[value])
    if order:
        element = exp.Order(this=element, expressions=order)
    texts = exp.GroupConcat(this=element, separator=exp.Literal.string(","))
    parts = exp.DPipe(
        this=exp.DPipe(this=exp.Literal.string("{"), expression=texts), expression=exp.Literal.string("}")
    )
    return exp.Anonymous(this=ARRAY_OF, expressions=[exp.Paren(this=parts)])
