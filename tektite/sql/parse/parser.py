"""From text to statements: DuckDB's dialect of SQL as sqlglot reads it, and the few statements that it does not know.

A statement keeps the places of its parts in the whole text, so that an error can point at them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tektite.errors import IncorrectError, UnsupportedError
from tektite.sql.parse.access_statements import AccessReader
from tektite.sql.parse.connector_statements import connector_statement
from tektite.sql.parse.dialect import STOPPED, Dialect
from tektite.sql.parse.instead import CREATED, STATEMENTS, instead
from tektite.sql.parse.places import KEYWORD, StatementText
from tektite.sql.parse.postgres_spelling import arrays_spelt, spelt
from tektite.sql.parse.property_graphs import property_graph_statement
from tektite.sql.parse.read_arguments import noting
from tektite.sql.parse.statements import (
    Begin,
    Deallocate,
    Execute,
    Explain,
    Named,
    Nothing,
    Plain,
    Prepare,
    Refresh,
    Savepoint,
    SetModes,
    SetSetting,
    Show,
    Statement,
    Subscribe,
)
from tektite.sql.parse.tokens import as_query, checked, tokenized, unclosed
from tektite.sql.parse.transaction_modes import TransactionModes, transaction_modes

__all__ = [
    "Begin", "Deallocate", "Execute", "Explain", "Named", "Nothing", "Plain", "Prepare", "Refresh", "SHOWN", "Savepoint",
    "SetModes", "SetSetting", "Show", "Statement", "StatementParser", "Subscribe", "label_of", "parameters_of", "parse",
]  # fmt: skip

ACCESS = ("CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "REASSIGN", "SET", "RESET")
"""Words that statements about roles and rights begin with, among others."""
BEGINNINGS = (
    "SELECT", "WITH", "VALUES", "FROM", "TABLE", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY",
    "EXPLAIN", "PREPARE", "EXECUTE", "DEALLOCATE", "SUBSCRIBE", "SHOW", "DESCRIBE", "SET", "RESET", "BEGIN", "START",
    "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT", "RELEASE", "TRUNCATE", "MERGE", "DECLARE", "FETCH", "CLOSE",
    "DISCARD", "REFRESH", "COMMENT", "ADVANCE", "GRANT", "REVOKE", "REASSIGN",
)  # fmt: skip
"""Words that statements begin with, for errors."""
_PERCENT = re.compile(r"%(\(\w+\))?s\b")
"""A parameter as psycopg has it."""
SHOWN = ("tables", "views", "indexes", "arrangements", "schemas", "columns", "sources", "sinks")


def parse(text: str) -> Iterator[Statement]:
    """The statements of a text, one by one."""
    source = StatementText(text)
    dialect = Dialect()
    try:
        tokens = tokenized(text, dialect)
    except TokenError as error:
        place, opening = unclosed(text)
        message = f"{opening} is not closed" if opening else str(error)
        raise source.syntax_error(f"{message}", place) from None
    statement: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            alone = StatementText(text, statement[0].start, statement[-1].end + 1)
            yield StatementParser(alone, dialect, statement).statement()
            statement = []


class StatementParser:
    """Reads one statement from its tokens."""

    def __init__(self, source: StatementText, dialect: Dialect, tokens: list[Token]) -> None:
        self.source = source
        self.dialect = dialect
        self.tokens = tokens
        self.at = 0

    def statement(self) -> Statement:
        start = self.tokens[0].start
        readers = {
            "EXPLAIN": self.explain, "PREPARE": self.prepare, "EXECUTE": self.execute, "DEALLOCATE": self.deallocate,
            "SUBSCRIBE": self.subscribe, "SHOW": self.show, "DESCRIBE": self.describe, "SET": self.set, "RESET": self.reset,
            "CLOSE": self.nothing_open, "UNLISTEN": self.nothing_open, "DISCARD": self.discard,
            "SAVEPOINT": self.savepoint, "RELEASE": self.savepoint, "BEGIN": self.begin, "START": self.begin,
            "END": self.ended, "ABORT": self.ended, "REFRESH": self.refresh,
        }  # fmt: skip
        first = self.tokens[0].text.upper()
        if first in ACCESS and self.tokens[0].token_type != TokenType.STRING:
            found = (
                connector_statement(self, start)
                or property_graph_statement(self, start)
                or AccessReader(self, start).statement()
            )
            if found is not None:
                return found
        reader = readers.get(first)
        if reader is None or self.tokens[0].token_type == TokenType.STRING:
            return Plain(self.source, start, self.tree(self.tokens))
        self.at = 1
        return reader(start)

    # ------------------------------------------------------------------ pieces

    def tree(self, tokens: list[Token]) -> exp.Expr:
        """The tree that sqlglot parses from some tokens."""
        if not tokens:
            raise self.source.syntax_error("the statement ends here", len(self.source.text))
        try:
            written = spelt(checked(self.source, as_query(tokens), self.dialect), self.source.text)
            trees = self.dialect.parser().parse(written, self.source.text)
        except ParseError as error:
            raise self._syntax_error(error) from None
        except RecursionError:
            message = "the statement is nested too deeply"
            raise self.source.error(message, tokens[0].start, UnsupportedError) from None
        except (
            TypeError,
            ValueError,
            AttributeError,
            LookupError,
        ) as error:  # sqlglot fails at some texts that are no SQL
            message = f"syntax error: the parser cannot read this statement ({error})"
            raise self.source.error(message, tokens[0].start) from None
        if len(trees) != 1:
            raise self.source.syntax_error(f"{tokens[0].text!r} was not expected", tokens[0].start)
        (found,) = trees
        if found is None or isinstance(found, exp.Command):
            words = [token.text.upper() for token in tokens[:2] if token.text.isidentifier()]
            alters = words == ["ALTER", "TABLE"]
            said = "this form of ALTER TABLE" if alters else " ".join(words)
            known = instead(CREATED, words[-1]) if words[:1] == ["CREATE"] else instead(STATEMENTS, "".join(words[:1]))
            known = ": write one ALTER TABLE for each action" if alters else known
            place = tokens[0].start
            stopped = None if found is None or known else found.meta.get(STOPPED)
            if stopped is not None and words[:1] == ["CREATE"] and stopped > tokens[min(2, len(tokens) - 1)].start:
                rest = [token.text for token in tokens if token.start >= stopped][:3]
                said, place = f"{' '.join(rest)} in {said}", stopped
            raise self.source.error(f"{said} is not supported{known}", place, UnsupportedError)
        return noting(arrays_spelt(found))

    def _syntax_error(self, error: ParseError) -> Exception:
        first = self.tokens[0]
        if first.token_type == TokenType.VAR and first.text.upper() not in BEGINNINGS:
            near = get_close_matches(first.text.upper(), BEGINNINGS, 1)
            meant = f"; did you mean {near[0]}?" if near else ", but with SELECT, INSERT, CREATE or another verb"
            return self.source.syntax_error(f"no statement begins with {first.text!r}{meant}", first.start)
        if not error.errors:
            return self.source.syntax_error(f"{error}", self.tokens[0].start)
        found = error.errors[0]
        line, column = found.get("line"), found.get("col")
        place = None
        if line is not None and column is not None:
            begin = 0
            for _ in range(line - 1):
                begin = self.source.text.find("\n", begin) + 1
            # sqlglot counts to the end of the token
            place = begin + column - len(found.get("highlight") or "")
        message = (found.get("description") or "invalid statement").rstrip(".").partition(" but got <Token")[0]
        if message.startswith("Required keyword"):  # of a class of sqlglot's
            message = "something is missing"
        shown = f" near {found['highlight']!r}" if found.get("highlight") else ""
        if _PERCENT.search(self.source.text):
            shown += "; a parameter is written $1, ? or $name, not %s"
        return self.source.syntax_error(f"{message}{shown}", place)

    def word(self, wanted: str) -> str:
        """The next token's text, which is a name."""
        if self.at >= len(self.tokens):
            raise self.source.syntax_error(f"expected {wanted}", self.tokens[-1].end + 1)
        token = self.tokens[self.at]
        if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) and not token.text.isidentifier():
            raise self.source.syntax_error(f"expected {wanted}, found {token.text!r}", token.start)
        self.at += 1
        return token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()

    def skip(self, word: str) -> bool:
        """Whether the next token is this word, which is then passed over."""
        found = self.at < len(self.tokens) and self.tokens[self.at].text.upper() == word
        self.at += found
        return found

    def end(self) -> None:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            raise self.source.syntax_error(f"{token.text!r} was not expected", token.start)

    def values(self) -> tuple[exp.Expr, ...] | None:
        """A list of values in parentheses, if there is one."""
        if self.at >= len(self.tokens):
            return None
        opening = self.tokens[self.at]
        if opening.token_type != TokenType.L_PAREN:
            raise self.source.syntax_error(f"expected (, found {opening.text!r}", opening.start)
        if self.tokens[self.at + 1 :] and self.tokens[self.at + 1].token_type == TokenType.R_PAREN:
            self.at += 2
            self.end()
            return ()
        found = self.tree(self.tokens[self.at :])
        self.at = len(self.tokens)
        return tuple(found.expressions) if isinstance(found, exp.Tuple) else (found.this,)

    # ------------------------------------------------------------------ statements of our own

    def explain(self, start: int) -> Statement:
        analyze, as_json = self.skip("ANALYZE"), False
        if not analyze:
            analyze, as_json = self.explain_options()
        if not analyze and self.skip("SUBSCRIBE"):
            return Explain(self.source, start, self.subscribe(start).tree, is_subscription=True, as_json=as_json)
        return Explain(self.source, start, self.tree(self.tokens[self.at :]), analyze, as_json=as_json)

    def explain_options(self) -> tuple[bool, bool]:
        """Whether options in parentheses say ANALYZE, and FORMAT JSON. A parenthesis may also begin a query."""
        analyze = as_json = False
        following = self.tokens[self.at + 1].text.upper() if self.at + 1 < len(self.tokens) else ""
        if following not in ("ANALYZE", "FORMAT") or not self.skip("("):
            return False, False
        while True:
            if self.skip("ANALYZE"):
                analyze = not self.skip("FALSE")
                self.skip("TRUE")
            elif self.skip("FORMAT"):
                as_json = self.skip("JSON")
                if not as_json and not self.skip("TEXT"):
                    raise self.source.syntax_error("expected FORMAT JSON or FORMAT TEXT", self.place)
            else:
                raise self.source.syntax_error("expected ANALYZE or FORMAT", self.place)
            if self.skip(")"):
                return analyze, as_json
            if not self.skip(","):
                raise self.source.syntax_error("expected , or )", self.place)

    def prepare(self, start: int) -> Statement:
        place, name = self.place, self.word("the name of the statement")
        declared = self.parameter_types() if self.skip("(") else ()
        if not self.skip("AS"):
            raise self.source.syntax_error("expected AS", self.place)
        return Prepare(self.source, start, place, name, self.tree(self.tokens[self.at :]), declared)

    def parameter_types(self) -> tuple[exp.DataType, ...]:
        """The types of a prepared statement's parameters, up to the parenthesis behind them."""
        found: list[exp.DataType] = []
        begin, depth = self.at, 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if depth == 0 and token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                if self.at == begin:
                    raise self.source.syntax_error("expected a type", token.start)
                written = self.source.text[self.tokens[begin].start : self.tokens[self.at - 1].end + 1]
                try:
                    type = exp.DataType.build(written, dialect=self.dialect)
                except (ParseError, ValueError):
                    raise self.source.syntax_error(f"{written!r} is not a type", self.tokens[begin].start) from None
                type.meta[KEYWORD] = self.tokens[begin].start
                found.append(type)
                begin = self.at + 1
                if token.token_type == TokenType.R_PAREN:
                    self.at += 1
                    return tuple(found)
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            self.at += 1
        raise self.source.syntax_error("expected ) behind the types", self.tokens[-1].end + 1)

    def execute(self, start: int) -> Statement:
        return Execute(
            self.source, start, self.place, self.word("the name of a prepared statement"), self.values() or ()
        )

    def deallocate(self, start: int) -> Statement:
        self.skip("PREPARE")
        return Deallocate(self.source, start, self.place, self.word("the name of a prepared statement"), self.values())

    def subscribe(self, start: int) -> Subscribe:
        self.skip("TO")
        tokens = self.tokens[self.at :]
        if len(tokens) == 1 or (len(tokens) == 3 and tokens[1].token_type == TokenType.DOT):
            parts = []
            for token in tokens[::2]:
                parts.append(exp.to_identifier(self.word("the name of a view")))
                parts[-1].meta["start"] = token.start
                self.at += self.at < len(self.tokens)  # the point
            table = exp.Table(this=parts[-1], db=parts[0] if len(parts) == 2 else None)
            return Subscribe(self.source, start, exp.Select(expressions=[exp.Star()], from_=exp.From(this=table)))
        return Subscribe(self.source, start, self.tree(tokens))

    def show(self, start: int) -> Statement:
        what = self.word(", ".join(word.upper() for word in SHOWN))
        if what == "all" and self.at == len(self.tokens):
            return Show(self.source, start, start, "", "all")
        if what not in SHOWN:
            words = [what]
            while self.at < len(self.tokens):
                words.append(self.word("the name of a setting"))
            return Show(self.source, start, self.tokens[1].start, " ".join(words), "setting")
        place, name = start, ""
        if what == "columns" and not (self.skip("FROM") or self.skip("IN")):
            raise self.source.syntax_error("expected FROM and a table", self.place)
        if what == "columns":
            place, name = self.place, self.qualified("the name of a table")
        self.end()
        return Show(self.source, start, place, name, what)

    def describe(self, start: int) -> Statement:
        self.skip("TABLE")
        place, name = self.place, self.qualified("the name of a table or view")
        self.end()
        return Show(self.source, start, place, name, "columns")

    def qualified(self, wanted: str) -> str:
        """A name, with a schema before it or without."""
        name = self.word(wanted)
        return f"{name}.{self.word(wanted)}" if self.skip(".") else name

    def set(self, start: int) -> Statement:
        """SET [SESSION | LOCAL] name TO | = values; SET TIME ZONE, NAMES and SESSION CHARACTERISTICS have words of their own."""
        if self.skip("SESSION") and self.skip("CHARACTERISTICS"):
            if not (self.skip("AS") and self.skip("TRANSACTION")):
                raise self.source.syntax_error("expected AS TRANSACTION and its modes", self.place)
            return SetModes(self.source, start, self.modes(True), True)
        if self.skip("TRANSACTION"):
            return SetModes(self.source, start, self.modes(True), False)
        if self.skip("LOCAL"):
            raise self.source.error(
                "SET LOCAL is not supported: SET lasts as long as the session", start, UnsupportedError
            )
        place = self.place
        name = self.qualified("the name of a setting")
        for words, meant in ((("time", "ZONE"), "timezone"), (("names", ""), "client_encoding")):
            if name == words[0] and (not words[1] or self.skip(words[1])):
                name = meant
        if name not in ("timezone", "client_encoding") and not (self.skip("TO") or self.skip("=")):
            raise self.source.syntax_error("expected TO or = and a value", self.place)
        self.skip("TO") or self.skip("=")
        values = []
        sign = ""
        for token in self.tokens[self.at :]:
            if token.token_type == TokenType.DASH:
                sign = "-"
            elif token.token_type != TokenType.COMMA:
                values.append(sign + token.text)
                sign = ""
        if not values:
            raise self.source.syntax_error("expected a value", self.place)
        is_default = [v.upper() for v in values] == ["DEFAULT"]
        return SetSetting(self.source, start, place, name, None if is_default else tuple(values))

    def nothing_open(self, start: int) -> Statement:
        """CLOSE ALL and UNLISTEN *: there are neither cursors nor channels, so that nothing is left open."""
        if not (self.skip("ALL") or self.skip("*")):
            what = self.tokens[0].text.upper()
            raise self.source.error(f"{what} of one name is not supported: there is nothing to {what.lower()}", start,
                                    UnsupportedError)  # fmt: skip
        self.end()
        return Nothing(self.source, start, self.tokens[0].text.upper())

    def discard(self, start: int) -> Statement:
        """DISCARD ALL: the settings of the session are as they began."""
        if not self.skip("ALL"):
            raise self.source.error("DISCARD takes ALL", self.place, UnsupportedError)
        self.end()
        return SetSetting(self.source, start, start, "", None)

    def begin(self, start: int) -> Statement:
        """BEGIN [WORK | TRANSACTION] modes, START TRANSACTION modes."""
        if not (self.skip("TRANSACTION") or self.skip("WORK")) and self.tokens[0].text.upper() == "START":
            raise self.source.syntax_error("expected TRANSACTION", self.place)
        return Begin(self.source, start, self.modes(False))

    def ended(self, start: int) -> Statement:
        """END [WORK | TRANSACTION] and ABORT: PostgreSQL's other words for COMMIT and ROLLBACK."""
        tree = exp.Commit() if self.tokens[0].text.upper() == "END" else exp.Rollback()
        tree.meta[KEYWORD] = start
        self.skip("TRANSACTION") or self.skip("WORK")
        self.end()
        return Plain(self.source, start, tree)

    def modes(self, is_needed: bool) -> TransactionModes:
        """The modes of a transaction, up to the end."""
        words, place = [token.text for token in self.tokens[self.at :]], self.place
        if is_needed and not words:
            raise self.source.syntax_error("expected ISOLATION LEVEL, READ ONLY or READ WRITE", place)
        self.at = len(self.tokens)
        try:
            return transaction_modes(words)
        except IncorrectError as error:
            raise self.source.placed(error, place) from None

    def savepoint(self, start: int) -> Statement:
        """SAVEPOINT name, RELEASE [SAVEPOINT] name."""
        what = self.tokens[0].text.upper()
        self.skip("SAVEPOINT")
        place, name = self.place, self.word("the name of a savepoint")
        self.end()
        return Savepoint(self.source, start, place, name, what)

    def refresh(self, start: int) -> Statement:
        """REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH DATA]."""
        for word in ("MATERIALIZED", "VIEW"):
            if not self.skip(word):
                raise self.source.syntax_error(f"expected {word}", self.place)
        self.skip("CONCURRENTLY")
        place, name = self.place, self.qualified("the name of a materialized view")
        if self.skip("."):
            name = f"{name.partition('.')[2]}.{self.word('the name of a materialized view')}"
        if self.skip("WITH") and not self.skip("DATA"):
            raise self.source.error("a materialized view always has its data", self.place, UnsupportedError)
        self.end()
        return Refresh(self.source, start, place, name)

    def reset(self, start: int) -> Statement:
        """RESET name | ALL."""
        place = self.place
        name = self.qualified("the name of a setting, or ALL")
        self.end()
        return SetSetting(self.source, start, place, "" if name == "all" else name, None)

    @property
    def place(self) -> int:
        """The position at which the next token begins, or the text ends."""
        return self.tokens[self.at].start if self.at < len(self.tokens) else self.tokens[-1].end + 1


def parameters_of(statement: Statement) -> set[str]:
    """The labels of the parameters whose values a statement needs when it is run: those of PREPARE come with EXECUTE."""
    match statement:
        case Plain() | Explain() | Subscribe():
            trees: tuple[exp.Expr, ...] = (statement.tree,)
        case Execute() | Deallocate():
            trees = statement.values or ()
        case _:
            trees = ()
    return {label_of(node) for tree in trees for node in tree.find_all(exp.Placeholder, exp.Parameter)}


def label_of(node: exp.Expr) -> str:
    """The label of a parameter: the text after its dollar sign."""
    return node.name if isinstance(node.this, exp.Expr) else str(node.this or "")
