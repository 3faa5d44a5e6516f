"""Roles, grants, policies and owners mean what they mean in PostgreSQL: random ones are tried on both.

Each seed makes two tables, three views over them and over each other, three users and two roles. Then it changes rights, and lets
users read and write. Each statement gives the same rows, or the same refusal, on both. `is_known` says what differs on purpose.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import tektite as tk
from benchmarks.server import postgres_programs, postgres_server
from tektite.server.postgres.sqlstates import sqlstate
from tests.support.nightly import few_of

USERS, GROUPS = ["amy", "bob", "eve"], ["staff", "chiefs"]
DENIED = "42501"
SETUP = """
CREATE TABLE t (id int PRIMARY KEY, owner text, v int); CREATE TABLE u (id int PRIMARY KEY, t_id int, who text, w int);
CREATE ROLE staff; CREATE ROLE chiefs; CREATE ROLE amy LOGIN; CREATE ROLE bob LOGIN NOINHERIT; CREATE ROLE eve LOGIN;
GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC
"""
CLEAN = """
RESET ROLE; DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP ROLE IF EXISTS staff, chiefs, bob, eve, amy
"""
CONDITIONS = {
    "t": ["owner = current_user", "v > 3", "v % 2 = 0", "id IN (SELECT t_id FROM u)", "true", "false", "owner IS NULL",
          "EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id AND u.w > 2)", "pg_has_role(current_user, 'staff', 'member')"],
    "u": ["who = current_user", "w > 3", "w % 2 = 1", "true", "t_id IN (1, 2, 3)", "who LIKE 'a%'", "false"],
}  # fmt: skip
VIEWS = (
    "SELECT id, owner, v FROM t WHERE v > 1", "SELECT id, current_user AS owner, v FROM t",
    "SELECT t.id, t.owner AS owner, u.w AS v FROM t JOIN u ON u.t_id = t.id",
    "SELECT max(id) AS id, owner, sum(v) AS v FROM t GROUP BY owner",
    "SELECT id, owner, v FROM t WHERE id NOT IN (SELECT id FROM u)",
    "SELECT id, owner, v FROM v1 WHERE id > 2", "SELECT v2.id, v1.owner, v2.v FROM v1 JOIN v2 ON v1.id = v2.id",
)  # fmt: skip


class Rights:
    """Random statements."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.policies = 0

    def setup(self) -> Iterator[str]:
        pick, some = self.chance.choice, self.chance.randrange
        names = ["NULL", *map(repr, USERS)]
        yield from (f"INSERT INTO t VALUES ({n}, {pick(names)}, {some(8)})" for n in range(1, 9))
        yield from (f"INSERT INTO u VALUES ({n}, {some(1, 9)}, {pick(names)}, {some(8)})" for n in range(1, 7))
        yield from (f"GRANT {role} TO {user}" for role in GROUPS for user in USERS if self.chance.random() < 0.4)
        for number, many in ((1, 5), (2, 6), (3, 7)):
            yield f"CREATE VIEW v{number} AS {pick(VIEWS[:many])}"
        yield from (f"ALTER {kind} OWNER TO {pick(USERS)}" for kind in ("TABLE t", "TABLE u", "VIEW v1", "VIEW v2"))
        yield from (self.change() for _ in range(10))

    def condition(self, table: str) -> str:
        pick = self.chance.choice
        found = [f"({pick(CONDITIONS[table])})" for _ in range(pick([1, 1, 1, 2]))]
        return pick([" AND ", " OR "]).join(found)

    def change(self) -> str:
        """A statement that changes rights."""
        pick, table = self.chance.choice, self.chance.choice("tu")
        what, relation = self.chance.randrange(8), pick(["t", "u", "t", "u", "v1", "v2", "v3"])
        if what < 3:
            verbs = self.chance.sample(["SELECT", "INSERT", "UPDATE", "DELETE"], self.chance.randrange(1, 4))
            return f"GRANT {', '.join(verbs)} ON {relation} TO {pick([*USERS, *GROUPS, 'PUBLIC'])}"
        if what == 3:  # what an owner takes from itself, it has here all the same
            return (
                f"REVOKE {pick(['SELECT', 'INSERT', 'UPDATE', 'ALL'])} ON {relation} FROM {pick([*GROUPS, 'PUBLIC'])}"
            )
        if what < 6:
            self.policies += 1
            command = pick(["ALL", "ALL", "SELECT", "INSERT", "UPDATE", "DELETE"])
            using = "" if command == "INSERT" else f" USING ({self.condition(table)})"
            is_checked = command == "INSERT" or (command in ("ALL", "UPDATE") and self.chance.random() < 0.5)
            check = f" WITH CHECK ({self.condition(table)})" if is_checked else ""
            kind, who = pick(["", "", "AS RESTRICTIVE"]), pick([*USERS, *GROUPS, "PUBLIC"])
            return f"CREATE POLICY p{self.policies} ON {table} {kind} FOR {command} TO {who}{using}{check}"
        if what == 6:
            return (
                f"ALTER TABLE {table} {pick(['ENABLE', 'ENABLE', 'DISABLE', 'FORCE', 'NO FORCE'])} ROW LEVEL SECURITY"
            )
        return pick([
            f"GRANT {pick(GROUPS)} TO {pick(USERS)}", f"REVOKE {pick(GROUPS)} FROM {pick(USERS)}",
            f"ALTER TABLE {table} OWNER TO {pick(USERS)}",
        ])  # fmt: skip

    def statement(self) -> str:
        """A statement of a user."""
        pick, some = self.chance.choice, self.chance.randrange
        rel, base, n, key, me = pick(["t", "t", "u", "v1", "v2", "v3"]), pick("tu"), some(8), some(1, 14), pick(USERS)
        number, name = ("v", "owner") if base == "t" else ("w", "who")
        row = f"({key}, '{me}', {n})" if base == "t" else f"({key}, {some(1, 9)}, '{me}', {n})"
        other, link = ("u", "u.t_id = t.id") if base == "t" else ("t", "t.id = u.t_id")
        back = pick(["", " RETURNING *", " RETURNING id"])
        return pick([
            f"SELECT * FROM {rel}", f"SELECT id FROM {rel} WHERE id = {key}", "SELECT t.id, u.id FROM t JOIN u ON u.t_id = t.id",
            "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id)",
            f"WITH q AS (SELECT * FROM {rel}) SELECT count(*) FROM q",
            f"SELECT (SELECT max(id) FROM {rel})", f"SELECT 1 WHERE 3 IN (SELECT id FROM {rel})",
            "SELECT id FROM t UNION ALL SELECT id FROM u",
            f"SELECT id FROM {rel} EXCEPT SELECT id FROM v1",
            f"INSERT INTO {base} VALUES {row}{back}", f"INSERT INTO {base} VALUES {row} ON CONFLICT (id) DO NOTHING{back}",
            f"INSERT INTO {base} VALUES {row} ON CONFLICT (id) DO UPDATE SET {number} = excluded.{number}{back}",
            f"INSERT INTO {base} VALUES {row} ON CONFLICT (id) DO UPDATE SET {name} = '{me}' WHERE {base}.{number} > {n}{back}",
            f"INSERT INTO t SELECT id + 20, owner, v FROM {pick(['t', 'v1', 'v2'])} WHERE id = {key}{back}",
            f"UPDATE {base} SET {number} = {n} WHERE id = {key}{back}",
            f"UPDATE {base} SET {name} = '{me}' WHERE {number} > {n}{back}",
            f"UPDATE {base} SET {number} = {number} + 1 WHERE id IN (SELECT id FROM {rel}){back}",
            f"UPDATE {base} SET {number} = {number} + 1 FROM {other} WHERE {link} AND {other}.id = {n}",
            f"DELETE FROM {base} WHERE id = {key}{back}", f"DELETE FROM {base} WHERE {number} = {n}{back}",
            f"DELETE FROM {base} USING {other} WHERE {link} AND {other}.id = {n}",
        ])  # fmt: skip


def rows_of(rows: Any) -> tuple[str, Any]:
    return "rows", sorted(map(repr, rows))


class Here:
    """Tektite, with a session for each user."""

    def __init__(self) -> None:
        self.engine = tk.Engine()
        self.sessions: dict[str | None, Any] = {None: self.engine.session()}

    def run(self, user: str | None, text: str) -> tuple[str, Any]:
        if user not in self.sessions:
            self.sessions[user] = self.engine.session()
            self.sessions[user].sql(f"SET ROLE {user}")
        try:
            found = self.sessions[user].sql(text)
        except tk.TektiteError as error:
            return "error", DENIED if sqlstate(error) == DENIED else "other"
        return ("done", re.findall(r"\d+", found.message)[-1:]) if found.table is None else rows_of(found.rows())


class There:
    """PostgreSQL."""

    def __init__(self, client: psycopg.Connection[Any]) -> None:
        self.client = client
        client.execute(CLEAN)

    def run(self, user: str | None, text: str) -> tuple[str, Any]:
        self.client.execute("RESET ROLE" if user is None else f"SET ROLE {user}")
        try:
            found = self.client.execute(text)
        except psycopg.Error as error:
            return "error", DENIED if error.sqlstate == DENIED else "other"
        counted = re.findall(r"\d+", found.statusmessage or "")[-1:]
        return ("done", counted) if found.description is None else rows_of(found.fetchall())


def is_known(text: str, here: tuple[str, Any], there: tuple[str, Any]) -> bool:
    """Whether a difference is meant: what is refused here, though PostgreSQL finds nothing to refuse; and a row that is skipped,
    or that a policy hides, where PostgreSQL says that it would be refused.
    """
    nothing = here in (("rows", []), ("done", ["0"]))
    if there == ("error", DENIED):
        return nothing
    return here == ("error", DENIED) and (there in (("rows", []), ("done", ["0"])) or "(SELECT" in text or " u" in text)


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection[Any]]:
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres_server() as url, psycopg.connect(url, autocommit=True) as client:
        yield client


@pytest.mark.parametrize("seed", few_of(range(100), *range(12)))
def test_random_rights_are_those_of_postgresql(postgres: psycopg.Connection[Any], seed: int) -> None:
    rights, here, there = Rights(seed), Here(), There(postgres)
    for text in [*SETUP.split(";"), *rights.setup()]:
        assert here.run(None, text)[0] == there.run(None, text)[0], text
    agreed = 0
    for _ in range(70):
        if rights.chance.random() < 0.25:
            text, user = rights.change(), None
            assert here.run(user, text)[0] == there.run(user, text)[0], text
            continue
        text, user = rights.statement(), rights.chance.choice(USERS)
        mine, theirs = here.run(user, text), there.run(user, text)
        agreed += mine == theirs
        if mine == theirs:
            continue
        assert is_known(text, mine, theirs), (user, text, mine, theirs)
        if mine[0] != "error" or theirs[0] != "error":
            return  # the tables may differ from here on
    assert agreed
