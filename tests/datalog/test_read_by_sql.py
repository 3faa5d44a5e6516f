"""A predicate that nobody has asked for yet is read by SQL like any other relation."""

from __future__ import annotations

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")

RULES = "anc(x, y) :- parent(x, y).  anc(x, z) :- anc(x, y), parent(y, z)."


def registered() -> tk.Engine:
    engine = make_engine(autocommit=True)
    engine.create_table("parent", {"p": str, "c": str})
    engine.datalog(RULES)
    assert engine.views == ()
    return engine


def test_sql_reads_a_predicate_before_anybody_asked_for_its_view() -> None:
    engine = registered()
    engine.table("parent").insert([("a", "b"), ("b", "c")])
    assert engine.sql("SELECT count(*) FROM anc").rows() == [(3,)]
    assert engine.views == ("anc",)
    engine.table("parent").remove([("b", "c")])
    assert engine.sql("SELECT * FROM anc").rows() == [("a", "b")]


@pytest.mark.executors("spark")
def test_a_view_of_sql_over_a_predicate_is_kept_up_to_date() -> None:
    engine = registered()
    view = engine.create_view("counts", "SELECT x, count(*) AS n FROM anc GROUP BY x")
    engine.table("parent").insert([("a", "b"), ("b", "c")])
    assert sorted(view.rows()) == [("a", 2), ("b", 1)]
    engine.table("parent").remove([("a", "b")])
    assert view.rows() == [("b", 1)]
    assert engine.from_sql("SELECT x FROM anc").collect().num_rows == 1


def test_a_predicate_is_read_within_a_transaction() -> None:
    engine = registered()
    engine.table("parent").insert([("a", "b")])
    with engine.transaction():
        engine.table("parent").insert([("b", "c")])
        assert engine.sql("SELECT count(*) FROM anc").rows() == [(3,)]
    assert engine.sql("SELECT count(*) FROM anc").rows() == [(3,)]


def test_a_user_with_rights_does_not_make_a_view_by_naming_it() -> None:
    engine = registered()
    engine.sql("CREATE ROLE ann LOGIN")
    session = engine.session()
    session.sql("SET ROLE ann")
    with pytest.raises(tk.NotFoundError, match="no table or view 'anc'"):
        session.sql("SELECT * FROM anc")
    assert engine.views == ()
