"""What Python's methods give is what SQL gives, over epochs that add and remove rows."""

from __future__ import annotations

import datetime

import pytest

import tektite as tk
from tektite import col
from tests.support.sales import Query, World, assert_equals_sql

pytestmark = pytest.mark.executors

amount, price, shop = col("amount"), col("price"), col("shop")

CASES: dict[str, tuple[Query, str]] = {
    # columns
    "a text is a column": (
        lambda s, _: s.with_columns(x="amount").select("x", y="shop"), "SELECT amount, shop FROM sales"),
    "a literal text": (lambda s, _: s.select("shop", x=tk.lit("amount")), "SELECT shop, 'amount' FROM sales"),
    "a list of columns": (lambda s, _: s.select(["shop", col("amount")]), "SELECT shop, amount FROM sales"),
    "default names": (
        lambda s, _: s.select(amount * 2).select("amount"), "SELECT amount * 2 FROM sales"),
    "drop": (
        lambda s, _: s.drop("item", ["price", "cost"]).drop("at", "day", "paid"), "SELECT shop, amount FROM sales"),
    "rename": (
        lambda s, h: h.rename({"shop": "town", "town": "shop"}).select("shop", "rent"), "SELECT town, rent FROM shops"),
    "several predicates": (
        lambda s, _: s.filter(amount > 0, s["price"] > 0).select("amount", "price"),
        "SELECT amount, price FROM sales WHERE amount > 0 AND price > 0"),
    "equal columns": (lambda s, _: s.filter(shop="north", paid=True).select("*", x="amount").drop("x"),
        "SELECT * FROM sales WHERE shop = 'north' AND paid"),
    "drop_nulls": (
        lambda s, _: s.select("shop", "amount").drop_nulls("amount"),
        "SELECT shop, amount FROM sales WHERE amount IS NOT NULL"),
    # lists
    "explode of split": (
        lambda s, _: s.with_columns(part=col("item").str.split(" ")).explode("part").select("shop", "part"),
        "SELECT shop, unnest(string_split(item, ' ')) FROM sales"),
    "implode": (
        lambda s, _: s.group_by("shop").agg(x=amount.implode(order_by=["day", "amount"])),
        "SELECT shop, list(amount ORDER BY day, amount) FROM sales GROUP BY shop"),
    "implode and explode": (
        lambda s, _: s.group_by("shop").agg(x=amount.implode()).explode("x"),
        "SELECT shop, amount FROM sales"),
    "explode side by side": (
        lambda s, _: s.select(a=col("item").str.split(" "), b=col("shop").str.split("o")).explode("a", "b"),
        "SELECT unnest(string_split(item, ' ')), unnest(string_split(shop, 'o')) FROM sales"),
    # joins
    "join on a column": (
        lambda s, h: s.join(h, on="shop").select("item", "town"), "SELECT item, town FROM sales JOIN shops USING (shop)"),
    "join of two names": (
        lambda s, h: s.join(h, left_on="amount", right_on="rent").select("item", "amount", "shop_right"),
        "SELECT item, amount, shops.shop FROM sales JOIN shops ON amount = rent"),
    "join on two columns": (
        lambda s, h: s.join(h.rename(amount="rent"), on=["shop", "amount"]).select("shop", "amount", "town"),
        "SELECT sales.shop, amount, town FROM sales JOIN shops ON sales.shop = shops.shop AND amount = rent"),
    "suffix": (
        lambda s, h: h.join(h, on="town", suffix="_2").select("shop", "shop_2", "rent_2"),
        "SELECT a.shop, b.shop, b.rent FROM shops a JOIN shops b ON a.town = b.town"),
    "left join": (
        lambda s, h: s.join(h, on="shop", how="left").select("item", "shop", "town"),
        "SELECT item, sales.shop, town FROM sales LEFT JOIN shops USING (shop)"),
    "right join": (
        lambda s, h: s.join(h, on="shop", how="right").select("item", "shop", "town"),
        "SELECT item, shops.shop, town FROM sales RIGHT JOIN shops ON sales.shop = shops.shop"),
    "full join": (
        lambda s, h: s.join(h, on="shop", how="full").select("item", "shop", "town"),
        "SELECT item, coalesce(sales.shop, shops.shop), town FROM sales FULL JOIN shops ON sales.shop = shops.shop"),
    "full join of two names": (
        lambda s, h: s.join(h, left_on="amount", right_on="rent", how="full").select("item", "amount", "town"),
        "SELECT item, coalesce(amount, rent), town FROM sales FULL JOIN shops ON amount = rent"),
    "full join by floats": (
        lambda s, h: s.join(
            s.select(p=-price, i="item"), left_on="price", right_on="p", how="full").select("item", "price", "i"),
        "SELECT a.item, coalesce(a.price, -b.price), b.item FROM sales a FULL JOIN sales b ON a.price = -b.price"),
    "cross join": (
        lambda s, h: s.select("item").join(h.select("town"), how="cross"), "SELECT item, town FROM sales, shops"),
    "semi join": (
        lambda s, h: s.join(h, on="shop", how="semi").select("item"), "SELECT item FROM sales SEMI JOIN shops USING (shop)"),
    "anti join": (
        lambda s, h: s.join(h, on="shop", how="anti").select("item"), "SELECT item FROM sales ANTI JOIN shops USING (shop)"),
    "join on a condition": (
        lambda s, h: s.join(h, on=amount < col("rent"), how="left").select("item", "amount", "rent", "shop_right"),
        "SELECT item, amount, rent, shops.shop FROM sales LEFT JOIN shops ON amount < rent"),
    "right join on a condition": (
        lambda s, h: s.join(h, on=(shop == col("shop_right")) & (amount < col("rent")), how="right").select("item", "rent"),
        "SELECT item, rent FROM sales RIGHT JOIN shops ON sales.shop = shops.shop AND amount < rent"),
    # aggregates
    "aggregates of a column": (
        lambda s, _: s.group_by("shop").agg(
            amount.sum(), n=tk.count(), k=amount.count(), lo=amount.min(), hi=price.max(), m=amount.mean(), d=amount.n_unique()),
        "SELECT shop, sum(amount), count(*), count(amount), min(amount), max(price), avg(amount), count(DISTINCT amount) "
        "FROM sales GROUP BY shop"),
    "arithmetic of aggregates": (
        lambda s, _: s.group_by("shop", "paid").agg(x=tk.sum(amount * 2) / tk.count() + 1, y=tk.max(amount) - tk.min(amount)),
        "SELECT shop, paid, sum(amount * 2) / count(*) + 1, max(amount) - min(amount) FROM sales GROUP BY shop, paid"),
    "spread": (
        lambda s, _: s.group_by("shop").agg(
            a=price.std(), b=price.var(), c=amount.std(ddof=0), d=tk.var("amount", ddof=0), e=price.median(),
            f=price.quantile(0.25)),
        "SELECT shop, stddev(price), variance(price), stddev_pop(amount), var_pop(amount), median(price), "
        "quantile_cont(price, 0.25) FROM sales GROUP BY shop"),
    "first and last": (
        lambda s, _: s.group_by("shop").agg(
            a=amount.first(order_by=["at", "item", "amount", "price", "cost", "paid"]),
            b=amount.last(order_by=["at", "item", "amount", "price", "cost", "paid"])),
        "SELECT shop, first(amount ORDER BY at, item, amount, price, cost, paid), "
        "last(amount ORDER BY at, item, amount, price, cost, paid) FROM sales GROUP BY shop"),
    "mode and texts": (
        lambda s, _: s.group_by("paid").agg(a=amount.mode(), b=col("item").str.join("-")),
        "SELECT paid, mode(amount), string_agg(item, '-') FROM sales GROUP BY paid"),
    "truths": (
        lambda s, _: s.group_by("shop").agg(a=col("paid").any(), b=tk.all(amount > 0)),
        "SELECT shop, bool_or(paid), bool_and(amount > 0) FROM sales GROUP BY shop"),
    "chosen rows": (
        lambda s, _: s.group_by("shop").agg(x=amount.filter(col("paid")).sum(), n=amount.filter(price > 0).count()),
        "SELECT shop, sum(amount) FILTER (WHERE paid), count(amount) FILTER (WHERE price > 0) FROM sales GROUP BY shop"),
    "groups by an expression": (
        lambda s, _: s.group_by(shop.str.upper(), day=col("at").dt.truncate("day")).agg(tk.count()),
        "SELECT upper(shop), date_trunc('day', at), count(*) FROM sales GROUP BY 1, 2"),
    "a key in an aggregate's expression": (
        lambda s, _: s.group_by("amount").agg(x=col("amount") * tk.count()),
        "SELECT amount, amount * count(*) FROM sales GROUP BY amount"),
    "aggregates of decimals": (
        lambda s, _: s.group_by("shop").agg(a=col("cost").sum(), b=col("cost").mean()),
        "SELECT shop, sum(cost), avg(cost) FROM sales GROUP BY shop"),
    "aggregates of everything": (
        lambda s, _: s.filter(amount > 4).agg(amount.sum(), n=tk.count(), m=tk.median("price")),
        "SELECT sum(amount), count(*), median(price) FROM sales WHERE amount > 4"),
    "select of aggregates": (
        lambda s, _: s.select(amount.sum(), r=price.max() - price.min()),
        "SELECT sum(amount), max(price) - min(price) FROM sales"),
    # rows
    "union": (lambda s, h: s.select("shop").union(h.select("shop")), "SELECT shop FROM sales UNION ALL SELECT shop FROM shops"),
    "union of different rows": (
        lambda s, h: s.select("shop").union(h.select("shop"), distinct=True),
        "SELECT shop FROM sales UNION SELECT shop FROM shops"),
    "columns by name": (
        lambda s, h: h.select("shop", "town").union(h.select("town", "shop")),
        "SELECT shop, town FROM shops UNION ALL SELECT shop, town FROM shops"),
    "intersect": (
        lambda s, h: s.select("shop").intersect(h.select("shop")), "SELECT shop FROM sales INTERSECT SELECT shop FROM shops"),
    "intersect all": (
        lambda s, h: s.select("shop").intersect(h.select("shop"), distinct=False),
        "SELECT shop FROM sales INTERSECT ALL SELECT shop FROM shops"),
    "except": (
        lambda s, h: s.select("shop").except_(h.select("shop")), "SELECT shop FROM sales EXCEPT SELECT shop FROM shops"),
    "except all": (
        lambda s, h: s.select("shop").except_(h.select("shop"), distinct=False),
        "SELECT shop FROM sales EXCEPT ALL SELECT shop FROM shops"),
    "unique": (lambda s, _: s.select("shop", "paid").unique(), "SELECT DISTINCT shop, paid FROM sales"),
    "unique subset": (lambda s, _: s.unique(subset="shop").select("shop"), "SELECT DISTINCT shop FROM sales"),
    "unique keys": (lambda s, _: s.unique("shop", ["paid"]).select("shop", "paid"), "SELECT DISTINCT shop, paid FROM sales"),
    "top_k": (
        lambda s, _: s.select("amount").top_k(3, by="amount"),
        "SELECT amount FROM sales ORDER BY amount DESC NULLS LAST LIMIT 3"),
    "bottom_k": (
        lambda s, _: s.select("amount").bottom_k(3, by=["amount"]), "SELECT amount FROM sales ORDER BY amount LIMIT 3"),
    "top_k of groups": (
        lambda s, _: s.select("shop", "amount").top_k(1, by="amount", per="shop"),
        "SELECT shop, amount FROM sales QUALIFY row_number() OVER (PARTITION BY shop ORDER BY amount DESC NULLS LAST) = 1"),
    "top_k by an expression": (
        lambda s, _: s.select("amount").drop_nulls().top_k(2, by=-amount), "SELECT amount FROM sales WHERE amount IS NOT NULL "
        "ORDER BY -amount DESC LIMIT 2"),
    "sort and limit": (
        lambda s, _: s.select("shop", "amount").sort(
            "shop", -amount, descending=[True, False], nulls_last=False).limit(3, offset=1),
        "SELECT shop, amount FROM sales ORDER BY shop DESC NULLS FIRST, -amount NULLS FIRST LIMIT 3 OFFSET 1"),
    # windows
    "ranks": (
        lambda s, _: s.select(
            "shop", "amount", r=tk.rank().over("shop", order_by="amount"), d=tk.dense_rank().over("shop", order_by="amount"),
            p=tk.percent_rank().over("shop", order_by="amount"), c=tk.cume_dist().over("shop", order_by="amount"),
            n=tk.ntile(2).over(order_by=["shop", "amount"])),
        "SELECT shop, amount, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, "
        "ntile(2) OVER (ORDER BY shop, amount) FROM sales WINDOW w AS (PARTITION BY shop ORDER BY amount)"),
    "neighbours": (
        lambda s, _: s.select("amount").with_columns(
            a=amount.lag().over(order_by="amount"), b=amount.lead(2, default=0).over(order_by="amount"),
            c=amount.shift(-1).over(order_by="amount"), d=amount.diff().over(order_by="amount")),
        "SELECT amount, lag(amount) OVER w, lead(amount, 2, 0) OVER w, lead(amount) OVER w, amount - lag(amount) OVER w "
        "FROM sales WINDOW w AS (ORDER BY amount)"),
    "running totals": (
        lambda s, _: s.select("amount").select(
            a=amount.cum_sum().over(order_by="amount"), b=amount.cum_count().over(order_by="amount"),
            c=amount.cum_min().over(order_by="amount"), d=amount.cum_max().over(order_by="amount")),
        "SELECT sum(amount) OVER w, count(amount) OVER w, min(amount) OVER w, max(amount) OVER w FROM sales "
        "WINDOW w AS (ORDER BY amount ROWS UNBOUNDED PRECEDING)"),
    "aggregates of a partition": (
        lambda s, _: s.select(
            "shop", "amount", a=amount / amount.sum().over("shop"), b=tk.count().over("shop", "paid"), c=price.mean().over(),
            d=col("paid").any().over("shop")),
        "SELECT shop, amount, amount / sum(amount) OVER (PARTITION BY shop), count(*) OVER (PARTITION BY shop, paid), "
        "avg(price) OVER (), bool_or(paid) OVER (PARTITION BY shop) FROM sales"),
    "a frame of rows": (
        lambda s, _: s.select("amount").select(
            a=amount.sum().over(order_by="amount", rows=(-1, 1)), b=amount.max().over(order_by="amount", rows=(None, 0)),
            c=amount.sum().over(order_by="amount")),
        "SELECT sum(amount) OVER (ORDER BY amount ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), "
        "max(amount) OVER (ORDER BY amount ROWS UNBOUNDED PRECEDING), sum(amount) OVER (ORDER BY amount) FROM sales"),
    "the first of a partition": (
        lambda s, _: s.select(
            "shop", a=amount.first(order_by="amount").over("shop"), b=amount.last().over("shop", order_by="amount")),
        "SELECT shop, first_value(amount) OVER (PARTITION BY shop ORDER BY amount), last_value(amount) OVER (PARTITION BY shop "
        "ORDER BY amount ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM sales"),
    "a filter by a window": (
        lambda s, _: s.select("shop", "amount").filter(tk.row_number().over("shop", order_by="amount") <= 2),
        "SELECT shop, amount FROM sales QUALIFY row_number() OVER (PARTITION BY shop ORDER BY amount) <= 2"),
    "what no frame has": (
        lambda s, _: s.select("shop", "price", m=price.median().over("shop"), d=price.std().over(),
            n=amount.n_unique().over("shop")),
        "SELECT s.shop, price, g.m, (SELECT stddev(price) FROM sales), g.n FROM sales s JOIN (SELECT shop, median(price) AS m, "
        "count(DISTINCT amount) AS n FROM sales GROUP BY shop) g ON s.shop IS NOT DISTINCT FROM g.shop"),
    "a window of an expression": (
        lambda s, _: s.select(x=(amount - amount.mean()).over(shop.str.upper())),
        "SELECT amount - avg(amount) OVER (PARTITION BY upper(shop)) FROM sales"),
    # expressions
    "choices": (
        lambda s, _: s.select(x=tk.when(amount > 1).then("many").when(amount > 0).then(shop).otherwise("none")),
        "SELECT CASE WHEN amount > 1 THEN 'many' WHEN amount > 0 THEN shop ELSE 'none' END FROM sales"),
    "a choice without an end": (
        lambda s, _: s.select(x=tk.when(amount > 1).then(amount)), "SELECT CASE WHEN amount > 1 THEN amount END FROM sales"),
    "NULL": (
        lambda s, _: s.select(a=amount.fill_null(7), b=shop.is_in(["north", "east"]), c=amount.is_null(), d=amount.between(0, 2)),
        "SELECT coalesce(amount, 7), shop IN ('north', 'east'), amount IS NULL, amount BETWEEN 0 AND 2 FROM sales"),
    "rounding": (
        lambda s, _: s.select(
            a=price.round(1), b=price.floor(), c=price.ceil(), d=price.trunc(), e=col("cost").round(1), f=amount.round(-1),
            g=col("cost").floor(), h=abs(price), i=round(price)),
        "SELECT round(price, 1), floor(price), ceil(price), trunc(price), round(cost, 1), round(amount, -1), floor(cost), "
        "abs(price), round(price) FROM sales"),
    "powers and texts": (
        lambda s, _: s.select(a=amount**2, b=2**amount, c=shop + "/" + col("item")),
        "SELECT amount ** 2, 2 ** amount, shop || '/' || item FROM sales"),
    "divisions": (
        lambda s, _: s.select(a=tk.truncdiv(amount, 2), b=tk.truncmod(amount, 2), c=amount // 2, d=amount % 2),
        "SELECT amount // 2, amount % 2, CAST(floor(amount / 2) AS int), amount - 2 * CAST(floor(amount / 2) AS int) FROM sales"),
    "functions of text": (
        lambda s, _: s.select(
            a=col("item").str.upper(), b=col("item").str.len(), c=col("item").str.contains("u"), d=col("item").str.slice(1, 2),
            e=col("item").str.tail(2), f=col("item").str.head(2), g=col("item").str.replace_all("u", "o"),
            h=col("item").str.extract("([a-z]+) ([0-9])", 2), i=col("item").str.pad_start(4, "*"),
            j=col("item").str.starts_with("c")),
        "SELECT upper(item), length(item), contains(item, 'u'), substring(item, 2, 2), right(item, 2), left(item, 2), "
        "replace(item, 'u', 'o'), regexp_extract(item, '([a-z]+) ([0-9])', 2), lpad(item, 4, '*'), "
        "starts_with(item, 'c') FROM sales"),
    "functions of dates": (
        lambda s, _: s.select(
            a=col("at").dt.week(), b=col("day").dt.ordinal_day(), c=col("at").dt.isoweekday(),
            d=col("at").dt.strftime("%d.%m.%Y %H:%M"),
            e=col("at").dt.date(), f=col("day").dt.month_end(), g=col("at").dt.epoch(), h=col("at").dt.truncate("hour"),
            i=col("day").dt.strftime("%A"), j=col("at").dt.hour(), k=col("day").dt.iso_year()),
        "SELECT week(at), dayofyear(day), isodow(at), strftime(at, '%d.%m.%Y %H:%M'), at::date, last_day(day), epoch(at), "
        "date_trunc('hour', at), strftime(day, '%A'), hour(at), isoyear(day) FROM sales"),
    "lengths of time": (
        lambda s, _: s.select(
            a=col("at") + datetime.timedelta(hours=30, microseconds=5), b=col("at") - datetime.timedelta(minutes=1),
            c=(col("day") + datetime.timedelta(days=2)), d=datetime.timedelta(days=1) + col("at")),
        "SELECT at + INTERVAL 30 HOUR + INTERVAL 5 MICROSECOND, at - INTERVAL 1 MINUTE, CAST(day + INTERVAL 2 DAY AS date), "
        "at + INTERVAL 1 DAY FROM sales"),
}  # fmt: skip


@pytest.mark.executors(stages=["full join", "spread", "ranks"], spark=["full join"])
@pytest.mark.parametrize("name", CASES)
def test_python_gives_what_sql_gives_at_every_epoch(name: str) -> None:
    assert_equals_sql(*CASES[name])


ALIKE = {
    "join on a column", "left join", "semi join", "cross join", "aggregates of a column", "arithmetic of aggregates",
    "spread", "ranks", "running totals", "a frame of rows", "intersect", "except", "rounding",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ALIKE))
def test_python_and_sql_have_one_plan(name: str) -> None:
    world = World()
    query, sql = CASES[name]
    found = query(world.sales, world.shops).explain().splitlines()
    wanted = [line for (line,) in world.engine.sql(f"EXPLAIN {sql}").rows()]

    def operators(lines: list[str]) -> list[str]:
        """The words that the lines of a plan begin with, and how deep they stand."""
        plan = lines[1 : next((at for at, line in enumerate(lines) if at and not line.startswith(" ")), len(lines))]
        return [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in plan]

    assert operators(found) == operators(wanted)
