"""DuckDB's dialect, with corrections where sqlglot differs from DuckDB.

* `~` binds less than arithmetic: ~1 + 1 is ~(1 + 1).
* DATE '2024-01-01'::timestamp is a cast of the date, not a date of the cast.
* The text of an interval stays as it is written: sqlglot would keep the first length in it.
* Places in lists and paths of JSON stay as they are written.
* A column may be called like a type of other values: range < 5, list < 5.
* What EXPLAIN and its like say stays tokens, so that we parse it.
* The clauses of a query stand in the order of the language; what orders or limits one side of a UNION stands in parentheses.
* GRAPH_TABLE has a pattern in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from tektite.sql.parse.places import KEYWORD
from tektite.sql.parse.property_graphs import CALLED, graph_table

OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
JSON_PAIR, JSON_OF_PAIRS = "json pair", "json of pairs"
"""The functions that JSON_OBJECT_AGG is rewritten to; no text can name them."""
OPERATORS = {
    TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD, TokenType.CARET, TokenType.DPIPE, TokenType.DOT,
    TokenType.DCOLON, TokenType.COMMA, TokenType.R_PAREN, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.GT,
    TokenType.LTE, TokenType.GTE, TokenType.AMP, TokenType.PIPE, TokenType.ARROW, TokenType.DARROW, TokenType.L_BRACKET,
}  # fmt: skip
"""Tokens that may follow the name of a column, but not the word INTERVAL."""
STOPPED = "stopped"
"""Under which a statement that is not understood notes where the first token stands that nothing is known of."""
STOOD = "stood"
"""Under which a query notes which clauses it has."""
CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


def whole(name: str, builder: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a builder of a function's node so that it refuses arguments that the builder drops. The builder may replace a word,
    such as the unit of date_trunc, by another form: there is a new leaf for each.
    """
    takes_dialect = "dialect" in getattr(getattr(builder, "__code__", None), "co_varnames", ())

    def build(args: list[Any], dialect: Any) -> Any:
        given = list(args)
        made = builder(args, dialect=dialect) if takes_dialect else builder(args)
        left = [arg for arg in given if isinstance(arg, exp.Expr) and not lies_in(arg, made)]
        if left and (not all(arg.is_string for arg in left) or len(left) > new_words(made, given)):
            message = f"too many arguments for {name.lower()}"
            raise ParseError.new(message, description=message)
        return made

    return build


def lies_in(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether a node is part of a tree."""
    while node is not tree:
        parent = node.parent
        held = None if parent is None else parent.args.get(node.arg_key or "")
        if parent is None or not (held is node or isinstance(held, list) and any(one is node for one in held)):
            return False
        node = parent
    return True


def new_words(made: exp.Expr, given: list[Any]) -> int:
    """The number of words and texts of a function's node that are not among its arguments."""
    found, waiting = 0, [made]
    while waiting:
        node = waiting.pop()
        if not any(node is arg for arg in given):
            found += isinstance(node, exp.Var) or node.is_string
            waiting.extend(node.iter_expressions())
    return found


def trimmed(args: list[Any]) -> Any:
    """BTRIM: the text, and the characters to remove from both its ends."""
    if not 1 <= len(args) <= 2:
        raise ParseError.new("btrim takes 1 to 2 values", description="btrim takes 1 to 2 values")
    return exp.Trim(this=args[0], expression=args[1] if len(args) > 1 else None)


def json_agg(args: list[Any]) -> Any:
    """JSON_AGG: the JSON of a list of the values."""
    return exp.Anonymous(this="to_json", expressions=[exp.ArrayAgg(this=args[0] if args else None)])


def json_object_agg(args: list[Any]) -> Any:
    """JSON_OBJECT_AGG: the members of an object, joined."""
    pair = exp.Anonymous(this=JSON_PAIR, expressions=args)
    return exp.Anonymous(this=JSON_OF_PAIRS, expressions=[exp.GroupConcat(this=pair)])


NOT_RESERVED = {
    TokenType.ALTER,
    TokenType.DROP,
    TokenType.INSERT,
    TokenType.REVOKE,
    TokenType.ROLLBACK,
    TokenType.FORCE,
}
"""Words that may name a column, as in PostgreSQL and DuckDB, though sqlglot does not think so."""

LITERALS = (TokenType.NUMBER, TokenType.STRING)
ENDING = (TokenType.COMMA, TokenType.R_PAREN)
"""What stands behind a value that is one literal."""

CLAUSES = (("prewhere", "where"), ("group",), ("having",), ("windows", "qualify"), ("order",), ("limit", "offset"))
"""The clauses behind FROM by their names in sqlglot's tree, in the order in which they stand."""
RANKS = {clause: rank for rank, clauses in enumerate(CLAUSES) for clause in clauses}


def recorded(reader: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """Wraps a reader of a clause so that it records the clause's presence."""

    def read(parser: Any) -> tuple[str, Any]:
        token = parser._curr
        clause, tree = reader(parser)
        parser.stand_in_order(clause, token)
        return clause, tree

    return read


class Dialect(DuckDB):
    """DuckDB's dialect, read as DuckDB reads it."""

    INDEX_OFFSET = 0  # places in lists stay as they are written

    def to_json_path(self, path: Any) -> Any:
        """A path of JSON, which stays as it is written."""
        return path

    class Tokenizer(DuckDB.Tokenizer):
        COMMANDS = set()  # noqa: RUF012 (sqlglot declares it so)

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        ID_VAR_TOKENS = DuckDB.Parser.ID_VAR_TOKENS | NOT_RESERVED
        FUNCTIONS = {  # noqa: RUF012 (sqlglot declares it so)
            **{name: whole(name, builder) for name, builder in DuckDB.Parser.FUNCTIONS.items()},
            **{name: whole(name, json_agg) for name in ("JSON_AGG", "JSONB_AGG", "JSON_GROUP_ARRAY")},
            **dict.fromkeys(("JSON_OBJECT_AGG", "JSONB_OBJECT_AGG", "JSON_GROUP_OBJECT"), json_object_agg),
            "BTRIM": trimmed,
            "EVERY": whole("EVERY", exp.LogicalAnd.from_arg_list),
            "TO_TIMESTAMP": whole("TO_TIMESTAMP", lambda args: exp.UnixToTime(this=args[0] if args else None)),
        }
        FUNCTION_PARSERS = {**DuckDB.Parser.FUNCTION_PARSERS, CALLED: graph_table}  # noqa: RUF012 (sqlglot declares it so)
        UNARY_PARSERS = {  # noqa: RUF012 (sqlglot declares it so)
            **DuckDB.Parser.UNARY_PARSERS,
            TokenType.TILDE: lambda self: self.expression(exp.BitwiseNot(this=self._parse_term())),
        }

        QUERY_MODIFIER_PARSERS = {  # noqa: RUF012 (sqlglot declares it so)
            kind: recorded(reader) for kind, reader in DuckDB.Parser.QUERY_MODIFIER_PARSERS.items()
        }

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._clauses: list[list[tuple[str, Any]]] = []
            """The clauses that have stood so far in each of the queries around this place."""

        def _parse_query_modifiers(self, this: Any) -> Any:
            """The clauses behind FROM, each in its place: sqlglot takes them in any order."""
            stood = this.meta.setdefault(STOOD, []) if isinstance(this, self.MODIFIABLES) else []
            if stood:  # it reads joins first, and takes a comma for one
                index, token = self._index, self._curr
                if next(self._parse_joins(), None) is not None or self._index != index:
                    self.raise_error(f"a join stands before {stood[0][1]}", token=token)
            self._clauses.append(stood)
            try:
                return super()._parse_query_modifiers(this)
            finally:
                self._clauses.pop()

        def stand_in_order(self, clause: str, token: Any) -> None:
            """Note that a clause begins at a token; refuse it behind one that it belongs before.

            What locks rows stands anywhere, as in PostgreSQL: it is refused as such.
            """
            if clause == "locks":
                return
            stood = self._clauses[-1] if self._clauses else []
            word = token.text.upper()
            for other, said in stood:
                if RANKS.get(clause, 0) < RANKS.get(other, 0):
                    self.raise_error(f"{word} stands before {said}", token=token)
            stood.append((clause, word))

        def parse_set_operation(self, this: Any, *args: Any, **options: Any) -> Any:
            """A UNION and its like. What orders or limits its left side stands in parentheses with that."""
            last = this
            while isinstance(last, exp.SetOperation):
                last = last.expression
            token = self._curr
            found = super().parse_set_operation(this, *args, **options)
            if found is not None and isinstance(last, exp.Select):
                for clause in ("order", "limit", "offset"):
                    if last.args.get(clause) is not None:
                        word = last.args[clause].key.upper()
                        word = "ORDER BY" if word == "ORDER" else word
                        self.raise_error(
                            f"a query with {word} stands in parentheses before {token.text.upper()}", token=token
                        )
            return found

        def _warn_unsupported(self) -> None:
            """Does nothing: unknown syntax is refused, so there is nothing to warn of."""

        def expression(self, instance: Any, token: Any = None, comments: Any = None) -> Any:
            """A node of the tree, which knows where it stands even if it has no name or value in it."""
            if token is None and self._prev is not None:
                instance.meta[KEYWORD] = self._prev.start
            return super().expression(instance, token, comments)

        def _parse_assignment(self) -> Any:
            """An expression. A literal alone between commas needs none of the dozen levels that operators have."""
            return self._parse_primary() if self._is_lone_literal() else super()._parse_assignment()

        def _parse_expression(self) -> Any:
            """An expression with an alias, of which a literal alone has none."""
            return self._parse_primary() if self._is_lone_literal() else super()._parse_expression()

        def _is_lone_literal(self) -> bool:
            token, behind = self._curr, self._next
            return bool(token and behind) and token.token_type in LITERALS and behind.token_type in ENDING

        def _parse_table_parts(self, *args: Any, **options: Any) -> Any:
            """The name of a table, of which no part is missing: sqlglot takes a..b for b of some schema of a."""
            if self._curr and self._curr.token_type == TokenType.DOT:
                self.raise_error("a part of a name is missing")
            found = super()._parse_table_parts(*args, **options)
            if found is not None and any(isinstance(found.args.get(part), str) for part in ("this", "db", "catalog")):
                self.raise_error("a part of a name is missing")
            return found

        def _parse_types(self, *args: Any, **options: Any) -> Any:
            """A type, which stands where its name does. In `range < 5` it is a column that is called like a type."""
            begin, index = self._curr, self._index
            try:
                found = super()._parse_types(*args, **options)
            except ParseError:
                self._retreat(index)
                is_type = begin is None or begin.token_type not in self.NESTED_TYPE_TOKENS
                if is_type or self._next is None or self._next.token_type != TokenType.LT:
                    raise
                return None
            if isinstance(found, exp.DataType) and begin is not None:
                found.meta["start"] = begin.start
            return found

        def _parse_type(self, *args: Any, **options: Any) -> Any:
            """An operand. What stands behind a literal with a type before it is said of both together."""
            found = super()._parse_type(*args, **options)
            if not isinstance(found, exp.Cast) or isinstance(found.this, exp.Literal):
                return found
            literal = found.this
            while isinstance(literal, exp.Cast | exp.Dot | exp.Bracket):
                literal = literal.this
            type = found.args["to"]
            if not isinstance(literal, exp.Literal) or type.meta.get("start", 0) >= literal.meta.get("start", 0):
                return found
            whole = found.this
            literal.replace(exp.Cast(this=literal.copy(), to=type))
            return whole.pop()

        def _parse_function_call(self, *args: Any, **options: Any) -> Any:
            """A call. What its builder says of its arguments is said of its place."""
            token = self._curr
            try:
                return super()._parse_function_call(*args, **options)
            except ParseError as error:
                if error.errors and error.errors[0].get("line") is None:
                    self.raise_error(error.errors[0].get("description") or str(error), token=token)
                raise

        def _parse_as_command(self, start: Any) -> Any:
            """A statement that is not understood, which notes the token that nothing is known of."""
            stopped = self._curr
            found = super()._parse_as_command(start)
            found.meta[STOPPED] = None if stopped is None else stopped.start
            return found

        def _parse_distinct_arg_function(self, *args: Any, **options: Any) -> Any:
            """A function that may have DISTINCT before its arguments; sqlglot would drop those that it has no place for."""
            begin = self._index
            found = super()._parse_distinct_arg_function(*args, **options)
            depth = commas = 0
            for token in self._tokens[begin : self._index]:
                depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
                commas += token.token_type == TokenType.COMMA and not depth
            if commas >= len([value for value in found.args.values() if value is not None]):
                name = self._tokens[begin - 2].text.lower() if begin > 1 else "a function"
                self.raise_error(f"too many arguments for {name}")
            return found

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
            """An interval. What is added to it is no part of it."""
            index = self._index
            if not self._match(TokenType.INTERVAL) and require_interval:
                return None
            if self._curr is None or self._curr.token_type in OPERATORS:  # behind a column that is called interval
                self._retreat(index)
                return None
            text = self._match(TokenType.STRING, advance=False)
            signed = self._curr.token_type in (TokenType.DASH, TokenType.PLUS)
            this = self._parse_primary() if text else self._parse_interval_amount()
            names_nothing = not self._curr or self._curr.text.upper() not in self.dialect.VALID_INTERVAL_UNITS
            bare = isinstance(this, exp.Column) and not this.table and not this.this.quoted and self._curr
            if not this or (bare or signed) and names_nothing:
                self._retreat(index)
                return None
            return self._parse_interval_span(this, parse_function_unit=parse_function_unit)

        def _parse_interval_amount(self) -> Any:
            """The amount of a unit: a number, a column or something in parentheses, as in INTERVAL (n + 1) DAY."""
            return self._parse_unary()

        def _parse_interval_span(self, this: Any, parse_function_unit: bool = True) -> Any:
            text = this.name if this.is_string else None
            found = super()._parse_interval_span(this, parse_function_unit)
            if text is not None and found.this.name != text:
                found.set("this", exp.Literal.string(text))
                found.set("unit", None)
                found.set("fraction_in_string", None)
            return found
