"""What users of other libraries type first: each line gives an answer, or an error that says what to write."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import tektite as tk
from tests.house.test_coming_from import SALES, SHOPS
from tests.support import typed_lines

SAYS = re.compile(
    r"; use |did you mean|needs none|[Ww]rite |the column is c\[|it takes |such as|[Aa]s in |is a module|has no option|takes |"
    r"computes them|does not exist; the columns are|give .* a name|say |Put it|casts?\b|, or group by it|named by|rename one|"
    r"a column is tk|makes one of|parameters are|use filter|the columns are|there are:|all columns are|groups come|"
    r"delete\(condition\)|texts tk\.lit|needs "
)
"""What an error says if it helps: what to write, or what is there."""
ANSWERS = {"polars": 140, "pandas": 44, "ibis": 32, "spark": 28}
"""How many lines of a library give an answer at least."""


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        sales = {
            "shop": str,
            "item": str,
            "amount": int,
            "price": float,
            "day": tk.Date,
            "at": tk.Timestamp,
            "paid": bool,
        }
        made.create_table("sales", sales).insert(SALES)
        made.create_table("shops", {"shop": str, "town": str, "rent": int}).insert(SHOPS)
        yield made


def answer(engine: tk.Engine, line: str) -> None:
    """Run a line. A query is computed, and an expression is computed over the rows of sales."""
    found: Any = eval(line, typed_lines.names(engine))
    if isinstance(found, tk.Expr):
        found = engine.table("sales").select(x=found)
    if isinstance(found, tk.Collection):
        found.collect()


@pytest.mark.parametrize("library", typed_lines.LIBRARIES)
def test_every_line_is_answered_or_says_what_to_write(engine: tk.Engine, library: str) -> None:
    kinds: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in typed_lines.lines(library):
            try:
                answer(engine, line)
                kinds["answer"] += 1
            except (tk.TektiteError, AttributeError) as error:
                assert SAYS.search(str(error)), f"{line}: {error}"
                kinds["says"] += 1
    assert kinds["answer"] >= ANSWERS[library], kinds


def test_every_statement_of_duckdb_is_run_or_refused_by_what_it_says(engine: tk.Engine) -> None:
    kinds: Counter[str] = Counter()
    for line in typed_lines.lines("duckdb"):
        try:
            engine.sql(line, [1] if "$1" in line else ())
            kinds["answer"] += 1
        except tk.TektiteError as error:
            bare = str(error).splitlines()[0].endswith("is not supported")
            assert not bare or line.startswith(("CREATE", "ALTER", "CALL")), f"{line}: {error}"
            kinds["says"] += 1
    assert kinds["answer"] >= 130, kinds


def test_columns_are_named_by_texts_or_by_themselves(engine: tk.Engine) -> None:
    sales, shops = engine.table("sales"), engine.table("shops")
    assert sales.drop(tk.col("price"), sales["day"]).schema.names == ("shop", "item", "amount", "at", "paid")
    assert sales.unique(sales["shop"]).select("shop").collect().num_rows == 4
    assert sales.drop_nulls(sales["amount"]).collect().num_rows == 6
    for on in (tk.col("shop"), [tk.col("shop")], sales["shop"]):
        assert sales.join(shops, on=on).schema == sales.join(shops, on="shop").schema
    assert sales.join(shops, left_on=sales["amount"], right_on=shops["rent"]).schema.names[-1] == "town"
    with pytest.raises(tk.IncorrectError, match=r"a key that is computed is a condition"):
        sales.join(shops, left_on=sales["amount"] + 1, right_on="rent")
    with pytest.raises(tk.IncorrectError, match=r"compute it before"):
        sales.drop(sales["amount"] + 1)
    assert tk.col.amount.fingerprint == tk.col("amount").fingerprint
    assert sales.agg(n=tk.count("*")).collect().to_pydict() == {"n": [7]}


def test_numpy_makes_choices_of_expressions(engine: tk.Engine) -> None:
    import numpy as np

    sales = engine.table("sales")
    many = tk.when(sales["amount"] > 1).then("many").otherwise("few")
    assert sales.select(x=np.where(sales["amount"] > 1, "many", "few")).collect() == sales.select(x=many).collect()
    sizes = np.select([sales["amount"] > 3, sales["amount"] > 1], [2, 1], 0)  # type: ignore[list-item]
    assert sorted(sales.agg(n=tk.sum(sizes)).collect()["n"].to_pylist()) == [6]  # type: ignore[arg-type]
    with pytest.raises(tk.IncorrectError, match=r"np.percentile takes arrays.*quantile"):
        np.percentile(sales["amount"], 50)  # type: ignore[call-overload]
    with pytest.raises(tk.IncorrectError, match=r"use x\.sum\(\)"):
        np.sum(sales["amount"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["amount + 1", "list_position([1, 5], amount)", "(SELECT max(rent) FROM shops h WHERE h.shop = self.shop)"]
)
def test_an_expression_of_sql_is_what_the_query_gives_by_the_same_plan(engine: tk.Engine, text: str) -> None:
    sales = engine.table("sales")
    query, sql = sales.select(x=tk.sql_expr(text)), sales.sql(f"SELECT {text} AS x FROM self")
    assert str(query.explain()) == str(sql.explain())
    view = engine.create_view("ours", query)
    engine.create_view("theirs", sql)
    sales.remove(SALES[:2])
    sales.insert(SALES[:1])
    assert sorted(map(str, view.rows())) == sorted(map(str, engine.view("theirs").rows()))
    total = sales.group_by("shop").agg(n=tk.count(tk.sql_expr(text))).sort("shop").collect()
    assert total.num_rows == 4
    filtered = sales.filter(tk.sql_expr("amount > 1"), tk.sql_expr("price") > 2).collect()
    assert sorted(filtered["amount"].to_pylist()) == [2]


def test_a_mistake_in_an_expression_of_sql_is_shown_where_it_is(engine: tk.Engine) -> None:
    with pytest.raises(tk.TektiteError, match="no column 'nope'"):
        engine.table("sales").select(x=tk.sql_expr("nope + 1"))
    with pytest.raises(tk.IncorrectError, match="as a text, not 3"):
        tk.sql_expr(3)  # type: ignore[arg-type]


def test_correlation_and_covariance_are_maintained_as_in_numpy(engine: tk.Engine) -> None:
    import numpy as np

    sales = engine.table("sales")
    query = sales.group_by("shop").agg(
        c=tk.corr("amount", "price"), s=tk.cov("amount", "price"), w=tk.cov("amount", "price", ddof=0)
    )
    view = engine.create_view("ours", query)
    sql = """SELECT shop, corr(amount, price) AS c, covar_samp(amount, price) AS s, covar_pop(amount, price) AS w
             FROM sales GROUP BY shop"""
    theirs = engine.create_view("theirs", sql)
    rows = [
        ("north", "x", 7, 2.5, *SALES[0][4:]),
        ("north", "y", 3, 9.0, *SALES[0][4:]),
        ("south", "z", 2, 1.0, *SALES[0][4:]),
    ]
    for change in (lambda: sales.insert(rows), lambda: sales.remove(rows[:1]), lambda: sales.remove(SALES[1:2])):
        change()
        found = {row[0]: row[1:] for row in view.rows()}
        assert found == {row[0]: row[1:] for row in theirs.rows()}
        groups: dict[Any, list[tuple[float, float]]] = {}
        for row in sales.rows():
            if row[2] is not None and row[3] is not None:
                groups.setdefault(row[0], []).append((row[2], row[3]))
        for shop, (c, s, w) in found.items():
            pairs = np.array(groups.get(shop, []), float).reshape(-1, 2).T
            if pairs.shape[1] < 2:
                assert c is None and s is None
                continue
            assert s == pytest.approx(np.cov(pairs)[0, 1]) and w == pytest.approx(np.cov(pairs, ddof=0)[0, 1])
            assert c == pytest.approx(np.corrcoef(pairs)[0, 1])
    filtered = engine.sql("SELECT corr(amount, price) FILTER (WHERE paid) FROM sales").rows()[0][0]
    assert filtered == sales.filter(tk.col("paid")).agg(c=tk.corr("amount", "price")).collect()["c"].to_pylist()[0]
    with pytest.raises(tk.IncorrectError, match="corr takes two numbers"):
        engine.sql("SELECT corr(shop, price) FROM sales")


def test_a_module_and_a_method_that_are_taken_for_something_else_say_so(engine: tk.Engine) -> None:
    at = engine.table("sales")["at"]
    for wrong, says in (
        (lambda: tk.sql("SELECT 1"), r"tektite.sql is a module, not a function; use engine\.sql"),  # type: ignore[attr-defined]
        (lambda: at.dt.hour + 1, r"at\.dt\.hour is a method: write at\.dt\.hour\(\)"),  # type: ignore[operator]
        (lambda: -at.dt.year, r"at\.dt\.year is a method"),  # type: ignore[operator]
        (lambda: at.dt.year == 2024, r"at\.dt\.year is a method"),
        (lambda: engine.table("sales").schema(), "schema is no method"),
    ):
        with pytest.raises(tk.IncorrectError, match=says):
            wrong()
    with pytest.raises(AttributeError, match=r"use at\.dt\.year\(\)\.alias"):
        getattr(at.dt.year, "alias")  # noqa: B009
    assert at.dt.year().fingerprint == tk.col("at").year().fingerprint


def test_a_condition_that_names_an_output_is_told_how_to(engine: tk.Engine) -> None:
    for query in (
        "SELECT amount AS n FROM sales WHERE n > 1",
        "SELECT count(*) AS n FROM sales s JOIN shops h ON n = h.rent",
    ):
        with pytest.raises(
            tk.NotFoundError, match=r"'n' is an output of SELECT: repeat its expression, or write FROM \(SELECT"
        ):
            engine.sql(query)
    with pytest.raises(tk.NotFoundError) as other:
        engine.sql("SELECT amount AS n FROM sales WHERE m > 1")
    assert "output of SELECT" not in str(other.value)
