"""What SQL can, Python can, by the same plan: `explain` says the same of both, and both give the same rows at every epoch."""

from __future__ import annotations

import datetime
import re
from datetime import timedelta

import pytest

import tektite as tk
from tektite import col
from tests.support.executors import make_engine
from tests.support.sales import Query, World, assert_equals_sql

pytestmark = pytest.mark.executors

amount, price, item, at = col("amount"), col("price"), col("item"), col("at")

CASES: dict[str, tuple[Query, str]] = {
    # any query
    "sql over a collection": (
        lambda s, _: s.filter(amount > 0).sql("SELECT shop, amount FROM self WHERE amount < 5"),
        "SELECT shop, amount FROM (SELECT * FROM sales WHERE amount > 0) WHERE amount < 5"),
    "sql beside tables": (
        lambda s, _: s.sql("SELECT item, town FROM self JOIN shops USING (shop)"),
        "SELECT item, town FROM sales JOIN shops USING (shop)"),
    # functions
    "time_bucket": (
        lambda s, _: s.select(x=at.dt.truncate("15m"), y=col("day").dt.truncate("2d")),
        "SELECT time_bucket(INTERVAL '15 minutes', at) AS x, time_bucket(INTERVAL '2 days', day) AS y FROM sales"),
    "time_bucket of a timedelta": (
        lambda s, _: s.select(x=at.dt.truncate(timedelta(hours=5))),
        "SELECT time_bucket(INTERVAL '5 hours', at) AS x FROM sales"),
    "date_trunc": (
        lambda s, _: s.select(x=at.dt.truncate("1h"), y=at.dt.truncate("1mo")),
        "SELECT date_trunc('hour', at) AS x, date_trunc('month', at) AS y FROM sales"),
    "strptime": (
        lambda s, _: s.select(x=col("day").cast(str).str.to_datetime("%Y-%m-%d"), y=col("day").cast(str).str.to_date("%Y-%m-%d")),
        "SELECT strptime(day::varchar, '%Y-%m-%d') AS x, strptime(day::varchar, '%Y-%m-%d')::date AS y FROM sales"),
    "try_strptime": (
        lambda s, _: s.select(x=item.str.to_datetime("%d.%m.%Y", strict=False)),
        "SELECT try_strptime(item, '%d.%m.%Y') AS x FROM sales"),
    "a difference of timestamps": (
        lambda s, _: s.select(x=at - col("day"), y=at - datetime.datetime(2024, 1, 1), z=col("day") - datetime.date(2024, 1, 1)),
        "SELECT at - day AS x, at - TIMESTAMP '2024-01-01' AS y, day - DATE '2024-01-01' AS z FROM sales"),
    "a filter by a difference": (
        lambda s, _: s.filter(at - col("day") > timedelta(hours=9)),
        "SELECT * FROM sales WHERE at - day > INTERVAL '9 hours'"),
    "aggregates of differences": (
        lambda s, _: s.group_by("shop").agg(x=(at - col("day")).sum(), y=(at - col("day")).max(), z=(at - col("day")).mean()),
        "SELECT shop, sum(at - day) AS x, max(at - day) AS y, avg(at - day) AS z FROM sales GROUP BY shop"),
    "a bound that moves by a difference": (
        lambda s, _: s.filter(tk.now() - at < timedelta(days=1)),
        "SELECT * FROM sales WHERE now() - at < INTERVAL '1 day'"),
    "nullif": (lambda s, _: s.select(x=amount.nullif(1)), "SELECT nullif(amount, 1) AS x FROM sales"),
    "log": (lambda s, _: s.select(x=price.log(2), y=price.log()), "SELECT log(2, price) AS x, ln(price) AS y FROM sales"),
    "concat_ws": (
        lambda s, _: s.select(x=tk.concat_ws("-", col("shop"), item, amount)),
        "SELECT concat_ws('-', shop, item, amount) AS x FROM sales"),
    # aggregates
    "arg_max": (
        lambda s, _: s.group_by("shop").agg(x=amount.max_by(amount), y=price.filter(col("paid")).min_by("price")),
        "SELECT shop, arg_max(amount, amount) AS x, arg_min(price, price) FILTER (WHERE paid) AS y FROM sales GROUP BY shop"),
    "distinct": (
        lambda s, _: s.group_by("shop").agg(
            a=amount.unique().sum(), b=price.unique().mean(), c=amount.unique().count(), d=amount.unique().max()),
        "SELECT shop, sum(DISTINCT amount) AS a, avg(DISTINCT price) AS b, count(DISTINCT amount) AS c, "
        "max(DISTINCT amount) AS d FROM sales GROUP BY shop"),
    "distinct in an order": (
        lambda s, _: s.group_by("shop").agg(
            a=amount.unique().median(), b=amount.unique().implode(), c=item.unique().str.join("-")),
        "SELECT shop, median(DISTINCT amount) AS a, list(DISTINCT amount) AS b, string_agg(DISTINCT item, '-') AS c "
        "FROM sales GROUP BY shop"),
    "distinct of chosen rows": (
        lambda s, _: s.group_by("shop").agg(a=amount.filter(col("paid")).unique().sum()),
        "SELECT shop, sum(DISTINCT amount) FILTER (WHERE paid) AS a FROM sales GROUP BY shop"),
    "array_agg": (
        lambda s, _: s.group_by("shop").agg(a=amount.implode(order_by=["at", "amount"])),
        "SELECT shop, array_agg(amount ORDER BY at, amount) AS a FROM sales GROUP BY shop"),
    "rollup": (
        lambda s, _: s.rollup("shop", "paid").agg(x=amount.sum() / tk.count()),
        "SELECT shop, paid, sum(amount) / count(*) AS x FROM sales GROUP BY ROLLUP (shop, paid)"),
    "cube": (
        lambda s, _: s.cube("shop", "paid").agg(x=amount.sum()),
        "SELECT shop, paid, sum(amount) AS x FROM sales GROUP BY CUBE (shop, paid)"),
    "grouping sets": (
        lambda s, _: s.grouping_sets(["shop", "paid"], ["paid"]).agg(x=amount.max(), n=tk.count()),
        "SELECT shop, paid, max(amount) AS x, count(*) AS n FROM sales GROUP BY GROUPING SETS ((shop, paid), (paid))"),
    # windows
    "nth_value": (
        lambda s, _: s.select(x=amount.nth_value(2).over("shop", order_by=["at", "amount"])),
        "SELECT nth_value(amount, 2) OVER (PARTITION BY shop ORDER BY at, amount) AS x FROM sales"),
    "nth_value that ignores NULLs": (
        lambda s, _: s.select(x=amount.nth_value(2, ignore_nulls=True).over("shop", order_by=["at", "amount"], rows=(-3, None))),
        "SELECT nth_value(amount, 2 IGNORE NULLS) OVER (PARTITION BY shop ORDER BY at, amount "
        "ROWS BETWEEN 3 PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM sales"),
    "lag and lead that ignore NULLs": (
        lambda s, _: s.select(
            x=amount.lag(ignore_nulls=True).over("shop", order_by=["at", "amount"]),
            y=amount.lead(2, 9, ignore_nulls=True).over("shop", order_by=["at", "amount"])),
        "SELECT lag(amount IGNORE NULLS) OVER w AS x, lead(amount, 2, 9 IGNORE NULLS) OVER w AS y FROM sales "
        "WINDOW w AS (PARTITION BY shop ORDER BY at, amount)"),
    "last that ignores NULLs": (
        lambda s, _: s.select(x=amount.last(ignore_nulls=True).over("shop", order_by=["at", "amount"], rows=(None, 0))),
        "SELECT last_value(amount IGNORE NULLS) OVER (PARTITION BY shop ORDER BY at, amount ROWS UNBOUNDED PRECEDING) AS x "
        "FROM sales"),
    "range of numbers": (
        lambda s, _: s.select(x=price.sum().over("shop", order_by="amount", range=(-3, 1))),
        "SELECT sum(price) OVER (PARTITION BY shop ORDER BY amount RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS x FROM sales"),
    "range in descending order": (
        lambda s, _: s.select(x=price.sum().over("shop", order_by="amount", descending=True, range=(-3, 0))),
        "SELECT sum(price) OVER (PARTITION BY shop ORDER BY amount DESC RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS x "
        "FROM sales"),
    "range of time": (
        lambda s, _: s.select(x=tk.count().over("shop", order_by="at", range=(-timedelta(hours=30), timedelta(hours=2)))),
        "SELECT count(*) OVER (PARTITION BY shop ORDER BY at RANGE BETWEEN INTERVAL 30 HOUR PRECEDING AND "
        "INTERVAL 2 HOUR FOLLOWING) AS x FROM sales"),
    "groups and what is excluded": (
        lambda s, _: s.select(x=price.sum().over("shop", order_by="amount", groups=(-1, 0), exclude="ties")),
        "SELECT sum(price) OVER (PARTITION BY shop ORDER BY amount GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS x "
        "FROM sales"),
    "distinct in a window": (
        lambda s, _: s.select(x=amount.unique().sum().over("shop", order_by="at")),
        "SELECT sum(DISTINCT amount) OVER (PARTITION BY shop ORDER BY at) AS x FROM sales"),
    # time
    "tumble": (
        lambda s, _: s.tumble("at", "6h").select("shop", "window_start", "window_end"),
        "SELECT shop, window_start, window_end FROM tumble(sales, at, INTERVAL '6 hours')"),
    "hop": (
        lambda s, _: s.hop("at", "12h", "1d").select("shop", "window_start", "window_end"),
        "SELECT shop, window_start, window_end FROM hop(sales, at, INTERVAL '12 hours', INTERVAL '1 day')"),
    "session": (
        lambda s, _: s.session("at", "7h", by="shop").select("shop", "window_start", "window_end"),
        "SELECT shop, window_start, window_end FROM session(sales, at, INTERVAL '7 hours', shop)"),
    "asof join": (
        lambda s, h: s.join_asof(h, left_on="amount", right_on="rent", by="shop"),
        "SELECT s.*, h.town, h.rent FROM sales s ASOF LEFT JOIN shops h ON s.shop = h.shop AND s.amount >= h.rent"),
    "asof join forward": (
        lambda s, h: s.join_asof(
            h, left_on="amount", right_on="rent", strategy="forward", how="inner", allow_exact_matches=False),
        "SELECT s.*, h.shop AS shop_right, h.town, h.rent FROM sales s ASOF JOIN shops h ON s.amount < h.rent"),
    "asof join of one name": (
        lambda s, h: s.join_asof(s, on="at", by="shop", strategy="forward").select("shop", "at", "amount_right"),
        "SELECT a.shop, a.at, b.amount AS amount_right FROM sales a ASOF LEFT JOIN sales b ON a.shop = b.shop AND a.at <= b.at"),
}  # fmt: skip


@pytest.mark.executors(stages=["grouping sets"])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_sql(name: str) -> None:
    query, sql = CASES[name]
    assert_equals_sql(query, sql, epochs=3)


@pytest.mark.parametrize("name", CASES)
def test_plan_is_that_of_sql(name: str) -> None:
    query, sql = CASES[name]
    world = World()
    found, wanted = query(world.sales, world.shops).explain(), world.engine.from_sql(sql).explain()
    assert without_hidden_names(str(found)) == without_hidden_names(str(wanted))


HIDDEN = re.compile(r"#value\d+|window(?:#\d+)?\b(?!_)")
MOVED = re.compile(r"\((\w+) \+ (datetime\.timedelta\([^)]*\))\)")


def without_hidden_names(text: str) -> str:
    """A plan with one name for each column that no user named, and timedeltas in microseconds, as SQL has them."""
    text = MOVED.sub(lambda found: f"{found[1]} + {eval(found[2]) // timedelta(microseconds=1)}", text)
    seen: dict[str, str] = {}
    text = HIDDEN.sub(lambda found: seen.setdefault(found[0], f"hidden{len(seen)}"), text)
    text = re.sub(r"(?<=\w)#\d+", "", text).replace("_value", "").replace("at + -", "at - ").replace("at - -", "at + ")
    text = re.sub(r"\b(\w+) = \1\b", r"\1", text)
    # the one row of a group of all rows is a constant in Python and a table of the engine in SQL
    text = text.replace("1 constant row", "read __unit")
    return re.sub(r"\nindexes$", "", re.sub(r"\n  1 rows by \(#unit\).*", "", text))


def test_now_moves_rows_out() -> None:
    engine = make_engine()
    events = engine.create_table("events", {"at": tk.Timestamp})
    recent = events.filter(at > tk.now() - timedelta(hours=1))
    same = engine.from_sql("SELECT * FROM events WHERE at > now() - INTERVAL 1 HOUR")
    assert without_hidden_names(str(recent.explain())) == without_hidden_names(str(same.explain()))
    view = engine.install("recent", recent)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    events.insert([(now,), (now - timedelta(hours=2),)])
    engine.advance()
    assert view.rows() == [(now,)]
    events.remove([(now,)])
    engine.advance()
    assert view.rows() == []


def test_now_belongs_to_rows() -> None:
    engine = make_engine()
    events = engine.create_table("events", {"at": tk.Timestamp})
    with pytest.raises(tk.IncorrectError, match=r"now\(\) belongs into select"):
        events.join(events, on=at < tk.now())


def test_self_is_the_collection_alone_for_the_query_itself() -> None:
    """A view that reads a table called `self` still does; so do the names of the engine."""
    engine = make_engine()
    mine, table = engine.create_table("mine", {"x": tk.Int}), engine.create_table("self", {"y": tk.Int})
    engine.sql("CREATE VIEW over AS SELECT y FROM self")
    found = engine.install("found", mine.filter(col("x") > 1).sql("SELECT x, y FROM Self, over WHERE y > $low", low=5))
    mine.insert([(1,), (2,)])
    table.insert([(7,), (3,)])
    engine.advance()
    assert found.rows() == [(2, 7)]
    mine.remove([(2,)])
    engine.advance()
    assert found.rows() == []


def test_sql_in_a_loop() -> None:
    engine = make_engine()
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    step = "SELECT self.src, edges.dst FROM self JOIN edges ON self.dst = edges.src UNION SELECT src, dst FROM edges"
    reach = engine.install("reach", edges.iterate(lambda found: found.sql(step)))
    edges.insert([(1, 2), (2, 3)])
    engine.advance()
    assert sorted(reach.rows()) == [(1, 2), (1, 3), (2, 3)]
    edges.remove([(2, 3)])
    engine.advance()
    assert reach.rows() == [(1, 2)]


def test_several_collections_by_name() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"x": tk.Int})
    low, high = table.filter(col("x") < 3), table.filter(col("x") > 1)
    query = "SELECT l.x FROM low l JOIN High h USING (x)"
    both = engine.install("both", engine.from_sql(query, collections={"low": low, "High": high}))
    table.insert([(1,), (2,), (3,)])
    engine.advance()
    assert both.rows() == [(2,)]


REFUSED: dict[str, tuple[Query, str]] = {
    "unknown table": (lambda s, _: s.sql("SELECT * FROM slef"), "did you mean 'self'"),
    "unused parameter": (lambda s, _: s.sql("SELECT * FROM self", [1]), r"value of \$1 is used nowhere"),
    "no query": (lambda s, _: s.sql("DELETE FROM self"), "not supported|one query"),
    "another engine": (
        lambda s, _: s.engine.from_sql("SELECT * FROM o", collections={"o": World().sales}), "'o' is .* of another engine"),
    "no collection": (lambda s, _: s.engine.from_sql("SELECT * FROM o", collections={"o": 1}), "'o' needs a collection"),
    "a length of months": (lambda s, _: s.tumble("at", "1mo"), "months are not all of one length"),
    "no length": (lambda s, _: s.tumble("at", "soon"), "'15m'"),
    "a negative length": (lambda s, _: s.hop("at", timedelta(-1), "1h"), "longer than nothing"),
    "a window of a text": (lambda s, _: s.tumble("shop", "1h"), "'shop' is string, not a date"),
    "windows twice": (lambda s, _: s.tumble("at", "1h").tumble("at", "1h"), "there is a column 'window_start' already"),
    "truncation": (lambda s, _: s.select(at.dt.truncate("5mo")), "one, a quarter or a year"),
    "truncation by a number": (lambda s, _: s.select(at.dt.truncate(5)), "or a length of time such as '15m'"),
    "format": (lambda s, _: s.select(item.str.to_datetime("%Q")), "%Q in the format '%Q' is none of"),
    "format with a letter twice": (lambda s, _: s.select(item.str.to_date("%d.%m %-d")), "%d occurs twice in the format"),
    "strptime with a letter twice": (lambda s, _: s.sql("SELECT strptime(item, '%y/%m%y') FROM self"), "%y occurs twice"),
    "nearest": (lambda s, h: s.join_asof(h, on="shop", strategy="nearest"), "'backward' or 'forward'"),
    "asof by two": (lambda s, h: s.join_asof(s, on=["at", "day"]), "by="),
    "two frames": (lambda s, _: s.select(amount.sum().over(order_by="at", rows=(-1, 0), range=(-1, 0))), "not several"),
    "range without order": (lambda s, _: s.select(amount.sum().over(range=(-1, 0))), "range= needs one ordering column"),
    "range backwards": (
        lambda s, _: s.select(amount.sum().over(order_by="at", range=(timedelta(1), 0))), "ends before it starts"),
    "frame of a rank": (lambda s, _: s.select(tk.rank().over(order_by="at", rows=(-1, 0))), "takes no frame"),
    "excluded": (lambda s, _: s.select(amount.sum().over(order_by="at", exclude="me")), "'current row', 'group' or 'ties'"),
    "unique of rows": (lambda s, _: s.select(amount.unique()), "chooses the values of an aggregate"),
    "spread of different values": (lambda s, _: s.agg(amount.unique().std()), "std of different values"),
    "order of different values": (
        lambda s, _: s.agg(amount.unique().implode(order_by="at")), "in their own order alone"),
    "nth of nothing": (lambda s, _: s.select(amount.nth_value(0).over(order_by="at")), "at least 1"),
    "sets": (lambda s, _: s.grouping_sets(1), "takes sets of columns"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    query, message = REFUSED[name]
    world = World()
    with pytest.raises(tk.TektiteError, match=message):
        query(world.sales, world.shops)
