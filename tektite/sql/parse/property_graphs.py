"""SQL/PGQ, the part of the SQL standard about property graphs: CREATE and DROP PROPERTY GRAPH read from tokens, and GRAPH_TABLE
in FROM read by sqlglot's parser.

Both become trees: CREATE with the tables of nodes and edges, and GRAPH_TABLE with its pattern beside its text. What stands in
conditions and COLUMNS is any expression of SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tektite.sql.parse.connector_statements import expected
from tektite.sql.parse.statements import Plain, Statement

if TYPE_CHECKING:
    from tektite.sql.parse.parser import StatementParser

KIND = "PROPERTY GRAPH"
"""The kind of such a CREATE and DROP."""
CALLED = "GRAPH_TABLE"


class GraphElements(exp.Expression):
    """The lists of CREATE PROPERTY GRAPH: the tables of nodes and those of edges."""

    arg_types = {"nodes": True, "edges": False}  # noqa: RUF012 (sqlglot declares it so)


class ElementTable(exp.Expression):
    """A table of nodes or edges: its name in the graph, its key, its label, and its properties (None for all columns), each under
    the name of the graph and with its column. An edge has both of its ends.
    """

    arg_types = {"this": True, "alias": True, "key": False, "label": True, "properties": False, "ends": False}  # noqa: RUF012


class ElementProperty(exp.Expression):
    """A column as a property with a name."""

    arg_types = {"this": True, "alias": True}  # noqa: RUF012


class EdgeEnd(exp.Expression):
    """SOURCE or DESTINATION: columns of the edge, the table of nodes that they lead to, and columns there, if they are said."""

    arg_types = {"this": True, "key": True, "references": False}  # noqa: RUF012


class MatchedPattern(exp.Expression):
    """The arguments of GRAPH_TABLE: the graph, the paths of MATCH, the condition, and the columns."""

    arg_types = {"this": True, "paths": True, "where": False, "expressions": True}  # noqa: RUF012


class GraphPath(exp.Expression):
    """Nodes, and the edges between them."""

    arg_types = {"nodes": True, "edges": False}  # noqa: RUF012


class GraphNode(exp.Expression):
    """`(a IS Person WHERE a.age > 30)`. Without labels, any."""

    arg_types = {"this": False, "labels": False, "where": False}  # noqa: RUF012


class GraphEdge(exp.Expression):
    """`-[e IS Knows WHERE e.since > 2000]->{1,3}`. The direction is out, in or any. With a quantifier there are `least` edges at
    least, and `most` at most, or no end.
    """

    arg_types = {"this": False, "labels": False, "where": False, "direction": True, "least": False, "most": False}  # noqa: RUF012


# ---------------------------------------------------------------------- CREATE and DROP


def property_graph_statement(parser: StatementParser, start: int) -> Statement | None:
    """CREATE [OR REPLACE] PROPERTY GRAPH or DROP PROPERTY GRAPH, if the tokens are one."""
    words = [token.text.upper() for token in parser.tokens[:5]]
    replaces = words[1:3] == ["OR", "REPLACE"]
    parser.at = 3 if replaces else 1
    if words[0] not in ("CREATE", "DROP") or words[parser.at : parser.at + 2] != ["PROPERTY", "GRAPH"]:
        return None
    parser.at += 2
    is_new = words[0] == "CREATE"
    is_conditional = parser.skip("IF")
    for word in (("NOT", "EXISTS") if is_new else ("EXISTS",)) if is_conditional else ():
        expected(parser, word)
    tree: exp.Expr
    if is_new:
        name = table_name(parser, "the name of a property graph")
        elements = graph_elements(parser)
        tree = exp.Create(this=name, kind=KIND, expression=elements, exists=is_conditional, replace=replaces)
    else:
        names = listed(parser, lambda: table_name(parser, "the name of a property graph"))
        cascade = parser.skip("CASCADE")
        if not cascade:
            parser.skip("RESTRICT")
        tree = exp.Drop(this=names[0], tables=names, kind=KIND, exists=is_conditional, cascade=cascade)
    parser.end()
    return Plain(parser.source, start, tree)


def graph_elements(parser: StatementParser) -> GraphElements:
    """VERTEX TABLES (...) EDGE TABLES (...)."""
    if not (parser.skip("VERTEX") or parser.skip("NODE")):
        raise parser.source.error("syntax error: expected VERTEX TABLES and the tables of nodes", parser.place)
    nodes = element_tables(parser, False)
    edges: list[ElementTable] = []
    if parser.skip("EDGE") or parser.skip("RELATIONSHIP"):
        edges = element_tables(parser, True)
    return GraphElements(nodes=nodes, edges=edges)


def element_tables(parser: StatementParser, is_edge: bool) -> list[ElementTable]:
    """The tables in parentheses."""
    for word in ("TABLES", "("):
        expected(parser, word)
    found = listed(parser, lambda: element_table(parser, is_edge))
    expected(parser, ")")
    return found


def element_table(parser: StatementParser, is_edge: bool) -> ElementTable:
    """A table [AS name] [KEY (columns)], the ends of an edge, [LABEL label] and [PROPERTIES ...]."""
    table = table_name(parser, "the name of a table")
    alias = identifier(parser, "a name") if parser.skip("AS") else table.this.copy()
    key = columns(parser) if parser.skip("KEY") else []
    ends: list[EdgeEnd] = []
    for word in ("SOURCE", "DESTINATION") if is_edge else ():
        expected(parser, word)
        expected(parser, "KEY")
        own = columns(parser)
        expected(parser, "REFERENCES")
        node = identifier(parser, "a table of nodes")
        is_list = parser.at < len(parser.tokens) and parser.tokens[parser.at].token_type == TokenType.L_PAREN
        ends.append(EdgeEnd(this=node, key=own, references=columns(parser) if is_list else []))
    label = identifier(parser, "a label") if parser.skip("LABEL") else alias.copy()
    return ElementTable(this=table, alias=alias, key=key, ends=ends, label=label, properties=properties(parser))


def properties(parser: StatementParser) -> list[ElementProperty] | None:
    """NO PROPERTIES, PROPERTIES ALL COLUMNS or PROPERTIES (column [AS name], ...); without any of them, all columns."""
    if parser.skip("NO"):
        expected(parser, "PROPERTIES")
        return []
    if not parser.skip("PROPERTIES"):
        return None
    if parser.skip("ARE"):
        expected(parser, "ALL")
        expected(parser, "COLUMNS")
        return None
    if parser.skip("ALL"):
        expected(parser, "COLUMNS")
        return None

    def one() -> ElementProperty:
        column = identifier(parser, "a column")
        return ElementProperty(this=column, alias=identifier(parser, "a name") if parser.skip("AS") else column.copy())

    expected(parser, "(")
    found = listed(parser, one)
    expected(parser, ")")
    return found


def listed(parser: StatementParser, one: Any) -> list[Any]:
    """Things between commas."""
    found = [one()]
    while parser.skip(","):
        found.append(one())
    return found


def columns(parser: StatementParser) -> list[exp.Identifier]:
    """Names of columns in parentheses."""
    expected(parser, "(")
    found = listed(parser, lambda: identifier(parser, "a column"))
    expected(parser, ")")
    return found


def identifier(parser: StatementParser, wanted: str) -> exp.Identifier:
    """The next token, which is a name."""
    place = parser.place
    found = exp.to_identifier(parser.word(wanted), quoted=True)
    found.meta["start"] = place
    return found


def table_name(parser: StatementParser, wanted: str) -> exp.Table:
    """The name of a relation, with its schema if that is said."""
    first = identifier(parser, wanted)
    return exp.Table(this=identifier(parser, wanted), db=first) if parser.skip(".") else exp.Table(this=first)


# ---------------------------------------------------------------------- GRAPH_TABLE


def graph_table(parser: Any) -> exp.Anonymous:
    """Parse the text after `GRAPH_TABLE (`, up to its closing parenthesis, as a call. Its one argument is the text, so that it
    can be written again; the parsed pattern is beside it.
    """
    begin = parser._curr
    graph = parser._parse_table_parts()
    needed(parser, "MATCH")
    paths = parser._parse_csv(lambda: path(parser))
    where = condition(parser)
    needed(parser, "COLUMNS")
    opened(parser, TokenType.L_PAREN, "(")
    chosen = parser._parse_csv(parser._parse_expression)
    opened(parser, TokenType.R_PAREN, ")")
    pattern = MatchedPattern(this=graph, paths=paths, where=where, expressions=chosen)
    text = parser._find_sql(begin, parser._prev)
    return exp.Anonymous(this=CALLED, expressions=[exp.Var(this=text)], pattern=pattern)


def needed(parser: Any, word: str) -> None:
    if not parser._match_text_seq(word):
        parser.raise_error(f"Expected {word} in GRAPH_TABLE")


def opened(parser: Any, kind: TokenType, shown: str) -> None:
    if not parser._match(kind):
        parser.raise_error(f"Expected {shown} in GRAPH_TABLE")


def condition(parser: Any) -> exp.Expr | None:
    """WHERE and a condition, if they come next."""
    if not parser._match(TokenType.WHERE):
        return None
    found: exp.Expr | None = parser._parse_disjunction()
    if found is None:
        parser.raise_error("Expected a condition behind WHERE")
    return found


def path(parser: Any) -> GraphPath:
    """[ANY] node edge node ..."""
    parser._match(TokenType.ANY)
    nodes: list[GraphNode] = [node(parser)]
    edges: list[GraphEdge] = []
    while True:
        found = edge(parser)
        if found is None:
            return GraphPath(nodes=nodes, edges=edges)
        edges.append(found)
        nodes.append(node(parser))


def node(parser: Any) -> GraphNode:
    """A node in parentheses."""
    opened(parser, TokenType.L_PAREN, "a node such as (a IS Label)")
    found = GraphNode(**filler(parser))
    opened(parser, TokenType.R_PAREN, ")")
    return found


def filler(parser: Any) -> dict[str, Any]:
    """Variable, labels and condition, each of which may be left out."""
    name = None
    if parser._curr is not None and parser._curr.token_type not in (TokenType.IS, TokenType.COLON, TokenType.WHERE):
        name = parser._parse_id_var(any_token=False)
    labels = []
    if parser._match(TokenType.IS) or parser._match(TokenType.COLON):
        while True:
            label = parser._parse_id_var(any_token=False)
            if label is None:
                parser.raise_error("Expected a label")
            labels.append(label)
            if not parser._match(TokenType.PIPE):
                break
    return {"this": name, "labels": labels, "where": condition(parser)}


def edge(parser: Any) -> GraphEdge | None:
    """An edge, if one comes next: `-[...]->`, `<-[...]-`, `-[...]-`, `<-[...]->`, `->`, `<-`, `-`, `<->`, and its quantifier."""
    said: dict[str, Any] = {}
    if parser._match(TokenType.ARROW):
        direction = "out"
    elif parser._match(TokenType.LR_ARROW):
        direction = "any"
    else:
        is_in = bool(parser._match(TokenType.LT))
        if not parser._match(TokenType.DASH):
            if is_in:
                parser.raise_error("Expected <- or <-[")
            return None
        direction = "in" if is_in else "any"
        if parser._match(TokenType.L_BRACKET):
            said = filler(parser)
            opened(parser, TokenType.R_BRACKET, "]")
            if parser._match(TokenType.ARROW):
                direction = "any" if is_in else "out"
            elif not parser._match(TokenType.DASH):
                parser.raise_error("Expected - or -> behind the brackets of an edge")
    return GraphEdge(**said, direction=direction, **quantifier(parser))


def quantifier(parser: Any) -> dict[str, int | None]:
    """`*`, `+`, `{2}`, `{1,3}`, `{2,}` or `{,3}`, if one comes next."""
    if parser._match(TokenType.STAR):
        return {"least": 0, "most": None}
    if parser._match(TokenType.PLUS):
        return {"least": 1, "most": None}
    if not parser._match(TokenType.L_BRACE):
        return {}
    least = whole(parser)
    most = least
    if parser._match(TokenType.COMMA):
        most = whole(parser)
    elif least is None:
        parser.raise_error("Expected a number of edges")
    opened(parser, TokenType.R_BRACE, "}")
    return {"least": least or 0, "most": most}


def whole(parser: Any) -> int | None:
    """A whole number, if one comes next."""
    if not parser._match(TokenType.NUMBER):
        return None
    text = parser._prev.text
    if not text.isdecimal():
        parser.raise_error("Expected a whole number of edges")
    return int(text)
