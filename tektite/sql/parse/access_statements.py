"""Statements about roles, grants and policies, which sqlglot has no trees for: what they say, read from their tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from tektite.errors import UnsupportedError
from tektite.sql.parse.statements import Statement

if TYPE_CHECKING:
    from tektite.sql.parse.parser import StatementParser

FLAGS = {
    "SUPERUSER": "is_super", "LOGIN": "can_login", "INHERIT": "inherits", "CREATEROLE": "creates_roles",
    "CREATEDB": "creates_schemas", "BYPASSRLS": "bypasses_policies", "REPLICATION": "",
}  # fmt: skip
"""Options of a role that are said or, with NO before them, denied. Replication is accepted, and there is none."""
LIMITS = {"CONNECTION": "connection_limit", "ROW": "row_limit", "MEMORY": "memory_limit", "QUERY": "query_limit"}
"""Limits of a role, each with the word before LIMIT."""
COMMANDS = ("ALL", "SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class CreateRole(Statement):
    """CREATE ROLE or USER name with options."""

    name: str
    options: dict[str, Any]
    is_user: bool = False
    may_exist: bool = False


@dataclass(frozen=True)
class AlterRole(Statement):
    """ALTER ROLE name with options; an empty name is the current user."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True)
class DropRole(Statement):
    """DROP ROLE names."""

    names: tuple[str, ...]
    may_miss: bool = False


@dataclass(frozen=True)
class TakeRole(Statement):
    """SET ROLE name, or, with `is_login`, SET SESSION AUTHORIZATION name; no name is the role that the session began with."""

    name: str | None
    is_login: bool = False


@dataclass(frozen=True)
class ChangeGrants(Statement):
    """GRANT or REVOKE of privileges on objects. No privileges are all of them."""

    is_grant: bool
    privileges: tuple[str, ...]
    kind: str
    """table, schema, database, or `all tables` of schemas."""
    objects: tuple[str, ...]
    roles: tuple[str, ...]
    with_option: bool = False
    """Of GRANT, WITH GRANT OPTION; of REVOKE, GRANT OPTION FOR."""
    cascade: bool = False


@dataclass(frozen=True)
class ChangeMembers(Statement):
    """GRANT or REVOKE of roles."""

    is_grant: bool
    roles: tuple[str, ...]
    members: tuple[str, ...]
    with_option: bool = False


@dataclass(frozen=True)
class ChangePolicy(Statement):
    """CREATE, ALTER or DROP POLICY name ON table. What ALTER does not say is None."""

    what: str
    name: str
    table: str
    is_permissive: bool = True
    command: str = "ALL"
    roles: tuple[str, ...] | None = None
    using: str | None = None
    check: str | None = None
    may_miss: bool = False


@dataclass(frozen=True)
class SecureTable(Statement):
    """ALTER TABLE name ENABLE, DISABLE, FORCE or NO FORCE ROW LEVEL SECURITY."""

    table: str
    changes: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeOwner(Statement):
    """ALTER TABLE, VIEW or SCHEMA name OWNER TO role."""

    kind: str
    name: str
    owner: str


@dataclass(frozen=True)
class ChangeOwned(Statement):
    """REASSIGN OWNED BY roles TO role, or DROP OWNED BY roles, which has no new owner."""

    roles: tuple[str, ...]
    owner: str | None = None


@dataclass(frozen=True)
class ChangeToken(Statement):
    """CREATE TOKEN name [FOR role] [VALID UNTIL time], DROP TOKEN [IF EXISTS] name."""

    is_new: bool
    name: str
    role: str = ""
    valid_until: str | None = None
    may_miss: bool = False


class AccessReader:
    """Reads one of the statements from a parser's tokens."""

    def __init__(self, parser: StatementParser, start: int) -> None:
        self.parser = parser
        self.start = start

    def statement(self) -> Statement | None:
        """The statement that the tokens are, if it is one of these."""
        parser = self.parser
        words = [token.text.upper() for token in parser.tokens[:3]] + ["", "", ""]
        readers: dict[tuple[str, str], Callable[[], Statement]] = {
            ("CREATE", "ROLE"): self.create_role, ("CREATE", "USER"): self.create_role, ("CREATE", "GROUP"): self.create_role,
            ("ALTER", "ROLE"): self.alter_role, ("ALTER", "USER"): self.alter_role,
            ("DROP", "ROLE"): self.drop_role, ("DROP", "USER"): self.drop_role, ("DROP", "GROUP"): self.drop_role,
            ("CREATE", "POLICY"): self.create_policy, ("ALTER", "POLICY"): self.alter_policy,
            ("DROP", "POLICY"): self.drop_policy, ("CREATE", "TOKEN"): self.create_token,
            ("DROP", "TOKEN"): self.drop_token, ("REASSIGN", "OWNED"): self.reassign, ("DROP", "OWNED"): self.drop_owned,
            ("SET", "ROLE"): self.set_role, ("RESET", "ROLE"): self.reset_role,
        }  # fmt: skip
        parser.at = 2
        reader = readers.get((words[0], words[1]))
        if reader is None and words[0] in ("GRANT", "REVOKE"):
            parser.at = 1
            reader = self.grant
        if reader is None and words[1:3] == ["SESSION", "AUTHORIZATION"] and words[0] in ("SET", "RESET"):
            parser.at = 3
            reader = self.set_login
        if reader is None and words[0] == "ALTER":
            return self.altered()
        return None if reader is None else reader()

    # ------------------------------------------------------------------ pieces

    def names(self, wanted: str) -> tuple[str, ...]:
        """Names with commas between them, each with a schema or without."""
        found = [self.parser.qualified(wanted)]
        while self.parser.skip(","):
            found.append(self.parser.qualified(wanted))
        return tuple(found)

    def role(self) -> str:
        """A role. CURRENT_USER and its like are written as the empty name."""
        name = self.parser.word("the name of a role")
        return "" if name in ("current_user", "current_role", "session_user") else name

    def roles(self) -> tuple[str, ...]:
        found = [self._grantee()]
        while self.parser.skip(","):
            found.append(self._grantee())
        return tuple(found)

    def _grantee(self) -> str:
        self.parser.skip("GROUP")
        return self.role()

    def expected(self, *words: str) -> None:
        """Pass over words that have to stand here."""
        for word in words:
            if not self.parser.skip(word):
                raise self.parser.source.syntax_error(f"expected {word}", self.parser.place)

    def if_exists(self, *words: str) -> bool:
        """Whether IF EXISTS stands here, or IF NOT EXISTS."""
        if not self.parser.skip("IF"):
            return False
        self.expected(*words, "EXISTS")
        return True

    def text(self, wanted: str) -> str:
        """A text in quotes."""
        parser = self.parser
        if parser.at >= len(parser.tokens) or parser.tokens[parser.at].token_type != TokenType.STRING:
            raise parser.source.syntax_error(f"expected {wanted} in quotes", parser.place)
        parser.at += 1
        return str(parser.tokens[parser.at - 1].text)

    def condition(self) -> str:
        """A condition in parentheses, as it is written."""
        parser = self.parser
        if not parser.skip("("):
            raise parser.source.syntax_error("expected a condition in parentheses", parser.place)
        begin, depth = parser.place, 1
        while parser.at < len(parser.tokens):
            kind = parser.tokens[parser.at].token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            parser.at += 1
            if not depth:
                return parser.source.text[begin : parser.tokens[parser.at - 1].start].strip()
        raise parser.source.syntax_error("( is not closed", begin)

    def ended(self, statement: Statement) -> Statement:
        self.parser.end()
        return statement

    # ------------------------------------------------------------------ roles

    def create_role(self) -> Statement:
        is_user = self.parser.tokens[1].text.upper() == "USER"
        may_exist = self.if_exists("NOT")
        name = self.parser.word("the name of a role")
        return CreateRole(self.parser.source, self.start, name, self.options(), is_user, may_exist)

    def alter_role(self) -> Statement:
        return AlterRole(self.parser.source, self.start, self.role(), self.options())

    def options(self) -> dict[str, Any]:
        """The options of a role, by the names of its columns; `in_roles` and `members` are other roles."""
        parser = self.parser
        parser.skip("WITH")
        found: dict[str, Any] = {}
        while parser.at < len(parser.tokens):
            place, word = parser.place, parser.tokens[parser.at].text.upper()
            parser.at += 1
            if word.removeprefix("NO") in FLAGS and (word in FLAGS or word.startswith("NO")):
                found[FLAGS[word.removeprefix("NO")]] = word in FLAGS
            elif word == "ENCRYPTED":
                continue
            elif word == "PASSWORD":
                found["password"] = None if parser.skip("NULL") else self.text("a password")
            elif word == "VALID":
                self.expected("UNTIL")
                found["valid_until"] = self.text("a time")
            elif word in LIMITS and parser.skip("LIMIT"):
                found[LIMITS[word]] = self.amount()
            elif word == "IN" and (parser.skip("ROLE") or parser.skip("GROUP")):
                found["in_roles"] = self.names("the name of a role")
            elif word in ("ROLE", "USER"):
                found["members"] = self.names("the name of a role")
            elif word == "ADMIN":
                found["admins"] = self.names("the name of a role")
            else:
                raise parser.source.syntax_error(f"{word!r} is no option of a role", place)
        found.pop("", None)
        return found

    def amount(self) -> int | None:
        """A whole number, a size such as '64 MB', or NONE; -1 is none, too."""
        parser = self.parser
        if parser.skip("NONE") or parser.skip("NULL"):
            return None
        sign = -1 if parser.skip("-") else 1
        place = parser.place
        text = parser.tokens[parser.at].text if parser.at < len(parser.tokens) else ""
        parser.at += 1
        words = text.strip().upper()
        for unit, factor in (("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("", 1)):
            number = words.removesuffix(unit).strip()
            if words.endswith(unit) and number.isdigit():
                found = sign * int(number) * factor
                return None if found < 0 else found
        raise parser.source.syntax_error(f"expected a number or a size, such as '64 MB', found {text!r}", place)

    def drop_role(self) -> Statement:
        may_miss = self.if_exists()
        names = self.names("the name of a role")
        return self.ended(DropRole(self.parser.source, self.start, names, may_miss))

    def set_role(self) -> Statement:
        if not self.parser.skip("TO"):
            self.parser.skip("=")
        return self._taken(is_login=False)

    def reset_role(self) -> Statement:
        return self.ended(TakeRole(self.parser.source, self.start, None))

    def set_login(self) -> Statement:
        if self.parser.tokens[0].text.upper() == "RESET":
            return self.ended(TakeRole(self.parser.source, self.start, None, is_login=True))
        return self._taken(is_login=True)

    def _taken(self, is_login: bool) -> Statement:
        parser = self.parser
        if parser.skip("NONE") or parser.skip("DEFAULT"):
            return self.ended(TakeRole(parser.source, self.start, None, is_login))
        is_text = parser.at < len(parser.tokens) and parser.tokens[parser.at].token_type == TokenType.STRING
        name = self.text("the name of a role") if is_text else parser.word("the name of a role")
        return self.ended(TakeRole(parser.source, self.start, name, is_login))

    # ------------------------------------------------------------------ grants

    def grant(self) -> Statement:
        parser = self.parser
        is_grant = parser.tokens[0].text.upper() == "GRANT"
        with_option = False
        for option in ("GRANT", "ADMIN") if not is_grant else ():
            if parser.skip(option):
                self.expected("OPTION", "FOR")
                with_option = True
        said = [self._privilege()]
        while parser.skip(","):
            said.append(self._privilege())
        if not parser.skip("ON"):
            self.expected("TO" if is_grant else "FROM")
            members = self.roles()
            with_option = self._option(is_grant, "ADMIN") or with_option
            self._behaviour()
            return self.ended(ChangeMembers(parser.source, self.start, is_grant, tuple(said), members, with_option))
        kind = "table"
        if parser.skip("ALL"):
            self.expected("TABLES", "IN", "SCHEMA")
            kind = "all tables"
        elif parser.skip("SCHEMA"):
            kind = "schema"
        elif parser.skip("DATABASE"):
            kind = "database"
        else:
            parser.skip("TABLE")
        objects = self.names("the name of an object")
        self.expected("TO" if is_grant else "FROM")
        roles = self.roles()
        with_option = self._option(is_grant, "GRANT") or with_option
        cascade = self._behaviour()
        privileges = () if "ALL" in [word.upper() for word in said] else tuple(word.upper() for word in said)
        return self.ended(
            ChangeGrants(parser.source, self.start, is_grant, privileges, kind, objects, roles, with_option, cascade)
        )

    def _privilege(self) -> str:
        """A privilege, or the name of a role."""
        parser = self.parser
        place, word = parser.place, parser.word("a privilege or a role")
        if word == "all":
            parser.skip("PRIVILEGES")
        if word == "temp":
            word = "temporary"
        if parser.skip("("):
            raise parser.source.error(
                "privileges on columns are not supported: a view shows some columns of a table, and can be granted",
                place,
                UnsupportedError,
            )
        return word

    def _option(self, is_grant: bool, which: str) -> bool:
        """WITH GRANT OPTION, WITH ADMIN OPTION."""
        if not is_grant or not self.parser.skip("WITH"):
            return False
        self.expected(which, "OPTION")
        return True

    def _behaviour(self) -> bool:
        if self.parser.skip("GRANTED"):
            self.expected("BY")
            self.role()
        self.parser.skip("RESTRICT")
        return self.parser.skip("CASCADE")

    # ------------------------------------------------------------------ policies and owners

    def create_policy(self) -> Statement:
        parser = self.parser
        name = parser.word("the name of a policy")
        self.expected("ON")
        table = parser.qualified("the name of a table")
        is_permissive, command = True, "ALL"
        if parser.skip("AS"):
            is_permissive = not parser.skip("RESTRICTIVE")
            if is_permissive:
                self.expected("PERMISSIVE")
        if parser.skip("FOR"):
            place, command = parser.place, parser.word("a command").upper()
            if command not in COMMANDS:
                raise parser.source.error(f"a policy is for {', '.join(COMMANDS)}, not {command}", place)
        roles, using, check = self._policy_parts()
        return self.ended(
            ChangePolicy(parser.source, self.start, "CREATE", name, table, is_permissive, command, roles, using, check)
        )

    def _policy_parts(self) -> tuple[tuple[str, ...] | None, str | None, str | None]:
        parser = self.parser
        roles = self.roles() if parser.skip("TO") else None
        using = self.condition() if parser.skip("USING") else None
        check = None
        if parser.skip("WITH"):
            self.expected("CHECK")
            check = self.condition()
        return roles, using, check

    def alter_policy(self) -> Statement:
        parser = self.parser
        name = parser.word("the name of a policy")
        self.expected("ON")
        table = parser.qualified("the name of a table")
        roles, using, check = self._policy_parts()
        return self.ended(
            ChangePolicy(parser.source, self.start, "ALTER", name, table, roles=roles, using=using, check=check)
        )

    def drop_policy(self) -> Statement:
        parser = self.parser
        may_miss = self.if_exists()
        name = parser.word("the name of a policy")
        self.expected("ON")
        table = parser.qualified("the name of a table")
        parser.skip("CASCADE") or parser.skip("RESTRICT")
        return self.ended(ChangePolicy(parser.source, self.start, "DROP", name, table, may_miss=may_miss))

    def altered(self) -> Statement | None:
        """ALTER TABLE ... ROW LEVEL SECURITY, and OWNER TO of all kinds; None for what else ALTER changes."""
        parser = self.parser
        words = [token.text.upper() for token in parser.tokens]
        if words[-3:] == ["ROW", "LEVEL", "SECURITY"] and words[1] == "TABLE":
            self.if_exists()
            parser.skip("ONLY")
            table = parser.qualified("the name of a table")
            said = " ".join(words[parser.at : -3])
            changes = {"ENABLE": {"is_enabled": True}, "DISABLE": {"is_enabled": False}, "FORCE": {"is_forced": True},
                       "NO FORCE": {"is_forced": False}}.get(said)  # fmt: skip
            if changes is None:
                raise parser.source.syntax_error("expected ENABLE, DISABLE, FORCE or NO FORCE", parser.place)
            return SecureTable(parser.source, self.start, table, changes)
        if len(words) > 4 and words[-3:-1] == ["OWNER", "TO"]:
            kind = "schema" if words[1] == "SCHEMA" else "table"
            parser.at = 3 if words[1] == "MATERIALIZED" else 2
            self.if_exists()
            name = parser.qualified("the name of an object")
            if parser.at != len(words) - 3:  # a column of that name is renamed
                parser.at = 1
                return None
            self.expected("OWNER", "TO")
            return self.ended(ChangeOwner(parser.source, self.start, kind, name, self.role()))
        return None

    def reassign(self) -> Statement:
        self.expected("BY")
        roles = self.roles()
        self.expected("TO")
        return self.ended(ChangeOwned(self.parser.source, self.start, roles, self.role()))

    def drop_owned(self) -> Statement:
        self.expected("BY")
        roles = self.roles()
        self.parser.skip("CASCADE") or self.parser.skip("RESTRICT")
        return self.ended(ChangeOwned(self.parser.source, self.start, roles))

    # ------------------------------------------------------------------ tokens

    def create_token(self) -> Statement:
        parser = self.parser
        name = parser.word("the name of a token")
        role = self.role() if parser.skip("FOR") else ""
        until = None
        if parser.skip("VALID"):
            self.expected("UNTIL")
            until = self.text("a time")
        return self.ended(ChangeToken(parser.source, self.start, True, name, role, until))

    def drop_token(self) -> Statement:
        may_miss = self.if_exists()
        name = self.parser.word("the name of a token")
        return self.ended(ChangeToken(self.parser.source, self.start, False, name, may_miss=may_miss))
