"""Every construct of the language, maintained over random changes and compared with DuckDB at every epoch."""

from __future__ import annotations

import pytest

from tests.support.nightly import by_day_or_night
from tests.support.sql_oracle import Changing, bag

pytestmark = pytest.mark.executors

CONSTRUCTS = {
    "columns and arithmetic": "SELECT x, x + 1 AS y, x * 2 - k AS z, -x AS n, x / 2 AS h, x % 3 AS m, x // 2 AS q FROM a",
    "where": "SELECT * FROM a WHERE x > 2 AND (s = 'north' OR s IS NULL) AND NOT k = 3",
    "three-valued logic": "SELECT x > 3 AND k < 2 AS p, x > 3 OR k < 2 AS q, NOT x > 3 AS r, x IS NULL AS n FROM a",
    "is true": "SELECT q IS TRUE AS a, q IS NOT TRUE AS b, q IS FALSE AS c, q IS NULL AS d FROM c",
    "between and in": "SELECT * FROM a WHERE x BETWEEN 1 AND 5 AND k IN (1, 2, 3) AND s NOT IN ('north')",
    "in with null": "SELECT x, x IN (1, 2, NULL) AS i, x NOT IN (1, NULL) AS n FROM a",
    "like": "SELECT s, s LIKE 'n%' AS l, s ILIKE 'N%' AS i, s NOT LIKE '%h' AS n, s LIKE 'a!%b' ESCAPE '!' AS e FROM a",
    "case": "SELECT CASE WHEN x > 5 THEN 'big' WHEN x > 2 THEN 'middle' ELSE s END AS c, CASE k WHEN 1 THEN 10 "
    "END AS d FROM a",
    "text functions": "SELECT upper(s), lower(s), length(s), substring(s FROM 2 FOR 2), s || '-' || t, trim(' ' || s || ' '), "
    "left(s, 2), right(s, 2), replace(s, 'o', '0'), concat(s, t), strpos(s, 'o'), reverse(s) FROM a JOIN c USING (k)",
    "coalesce and nullif": "SELECT coalesce(x, k, 0), nullif(x, 3), greatest(x, k), least(x, k), abs(x) FROM a",
    "dates": "SELECT d + INTERVAL 1 MONTH AS m, d - INTERVAL '3 days' AS t, extract(year FROM d) AS y, "
    "extract(month FROM d) AS mo, extract(dow FROM d) AS w, d + 3 AS p, d - DATE '2024-02-01' AS n FROM a",
    "timestamps": "SELECT w + INTERVAL '90 minutes' AS l, extract(hour FROM w) AS h, date_trunc('day', w) AS t, "
    "w > TIMESTAMP '2024-06-01 12:00:00' AS c FROM c",
    "casts": "SELECT CAST(x AS double) / 2, CAST(x AS varchar), CAST(p AS int), CAST(y AS decimal(10, 2)), "
    "p::double FROM a JOIN b USING (k)",
    "round": "SELECT round(p, 1), round(p), floor(p), ceil(p), round(f) FROM b",
    "decimals": "SELECT p * (1 - p), p + 1, p - 0.5, p / 4 FROM b",
    "cross join": "SELECT a.x, b.y FROM a, b WHERE a.x < b.y",
    "inner join": "SELECT a.*, b.p FROM a JOIN b ON a.k = b.k",
    "join on expressions": "SELECT a.x, b.y FROM a JOIN b ON a.x + 1 = b.y * 2",
    "join of mixed types": "SELECT a.x, b.p FROM a JOIN b ON a.x = b.p",
    "join on floats": "SELECT b.k, o.k AS k2 FROM b JOIN b AS o ON b.f = o.f AND b.y < o.y",
    "left join": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k",
    "left join with more": "SELECT a.k, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.x > b.y AND b.p > 3",
    "left join by inequality": "SELECT a.x, b.y FROM a LEFT JOIN b ON a.x < b.y",
    "left join where": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k WHERE b.y IS NULL OR b.y > 1",
    "left join made inner": "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k WHERE b.y > 1",
    "right join": "SELECT a.x, b.y FROM a RIGHT JOIN b ON a.k = b.k",
    "full join": "SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k AND a.x > 1",
    "full join using": "SELECT k, x, y FROM a FULL JOIN b USING (k)",
    "natural join": "SELECT * FROM a NATURAL JOIN b",
    "three tables": "SELECT a.x, b.y, c.t FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.y WHERE a.x > 0",
    "triangle": "SELECT a.x, b.p, c.t FROM a, b, c WHERE a.k = b.k AND b.y = c.k AND c.k = a.x",
    "left join of joins": "SELECT a.x, b.y, c.t FROM a LEFT JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k",
    "chain of outer joins": "SELECT a.x, b.y, c.t FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.y = c.k",
    "comma binds less than join": "SELECT a.x, b.y, c.t FROM a, b RIGHT JOIN c ON b.k = c.k",
    "on reads before the comma": "SELECT a.x, b.y, c.t FROM a, b RIGHT JOIN c ON a.k = c.k",
    "lateral": "SELECT a.x, l.n FROM a, LATERAL (SELECT count(*) AS n, max(y) AS m FROM b WHERE b.k = a.k) AS l",
    "lateral rows": "SELECT a.x, l.y FROM a, LATERAL (SELECT DISTINCT y FROM b WHERE b.y < a.x) AS l",
    "left lateral": "SELECT a.x, l.y FROM a LEFT JOIN LATERAL (SELECT y FROM b WHERE b.k = a.k AND b.y > 1) AS l ON true",
    "is not distinct from": "SELECT a.x, b.y FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    "group by": "SELECT k, count(*), count(x), sum(x), avg(x), min(x), max(x) FROM a GROUP BY k",
    "group by expression": "SELECT x % 2 AS odd, count(*) FROM a GROUP BY x % 2",
    "group by alias and number": "SELECT upper(s) AS u, k, count(*) FROM a GROUP BY u, 2",
    "group by text and date": "SELECT s, d, count(*) FROM a GROUP BY s, d",
    "global aggregate": "SELECT count(*), sum(x), avg(x), min(s), max(d) FROM a",
    "global aggregate of nothing": "SELECT count(*), sum(x), max(x), min(s) FROM a WHERE x > 1000",
    "group of nothing": "SELECT k, count(*) FROM a WHERE x > 1000 GROUP BY k",
    "having": "SELECT k, sum(x) AS t FROM a GROUP BY k HAVING count(*) > 1 AND sum(x) > 2",
    "having without group": "SELECT sum(x) FROM a HAVING count(*) > 3",
    "count distinct": "SELECT k, count(DISTINCT s), count(DISTINCT x), sum(DISTINCT x) FROM a GROUP BY k",
    "filter": "SELECT k, count(*) FILTER (WHERE x > 2), sum(x) FILTER (WHERE s = 'north') FROM a GROUP BY k",
    "bool aggregates": "SELECT k, bool_and(q), bool_or(q) FROM c GROUP BY k",
    "aggregate of expression": "SELECT k, sum(p * (1 - p)) AS v, sum(p * y) / count(*) AS w FROM b GROUP BY k",
    "text extremes": "SELECT k, min(s), max(s) FROM a GROUP BY k",
    "float sums": "SELECT k, sum(f), avg(f), min(f), max(f) FROM b GROUP BY k",
    "distinct": "SELECT DISTINCT k, s FROM a",
    "distinct of groups": "SELECT DISTINCT count(*) FROM a GROUP BY k",
    "union all": "SELECT k, x FROM a UNION ALL SELECT k, y FROM b",
    "union": "SELECT k FROM a UNION SELECT k FROM b UNION SELECT y FROM b",
    "intersect": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "intersect all": "SELECT k FROM a INTERSECT ALL SELECT k FROM b",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "except all": "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
    "set operation of types": "SELECT x FROM a UNION ALL SELECT p FROM b UNION ALL SELECT NULL FROM c",
    "subquery in from": "SELECT t.k, t.n + 1 FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS t WHERE t.n > 1",
    "cte": "WITH m AS (SELECT k, max(x) AS top FROM a GROUP BY k) SELECT a.x, m.top FROM a JOIN m ON a.k = m.k "
    "WHERE a.x < m.top",
    "cte twice": "WITH m AS (SELECT k, sum(x) AS t FROM a GROUP BY k) SELECT o.k, o.t - p.t FROM m AS o, m AS p WHERE "
    "o.k = p.k + 1",
    "values": "SELECT v.i, a.x FROM (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS v(i, n) LEFT JOIN a ON a.k = v.i",
    "constant query": "SELECT 1 AS one, 'a' || 'b' AS ab, DATE '2024-01-31' + INTERVAL 1 MONTH AS d",
    "generate series": "SELECT g, count(x) FROM generate_series(1, 5) AS t(g) LEFT JOIN a ON a.k = t.g GROUP BY g",
    "scalar subquery": "SELECT x, (SELECT max(y) FROM b) AS m FROM a",
    "scalar subquery compared": "SELECT * FROM a WHERE x > (SELECT avg(y) FROM b)",
    "correlated scalar": "SELECT k, x, (SELECT sum(y) FROM b WHERE b.k = a.k) AS t FROM a",
    "correlated count": "SELECT k, x, (SELECT count(*) FROM b WHERE b.k = a.k AND b.y > 1) AS n FROM a",
    "correlated by inequality": "SELECT x, (SELECT count(*) FROM b WHERE b.y < a.x) AS n, "
    "(SELECT min(p) FROM b WHERE b.y > a.x) AS m FROM a",
    "correlated comparison": "SELECT * FROM b WHERE p > (SELECT avg(p) FROM b AS o WHERE o.k = b.k)",
    "correlated having": "SELECT x, (SELECT count(*) FROM b WHERE b.k = a.k HAVING count(*) < 2) AS n FROM a",
    "correlated top": "SELECT x, (SELECT y FROM b WHERE b.k = a.k ORDER BY p DESC, y, f LIMIT 1) IS NULL AS t FROM a",
    "correlated distinct": "SELECT x, (SELECT count(DISTINCT y) FROM b WHERE b.k <= a.k) AS n FROM a",
    "correlated through two": "SELECT k, (SELECT count(*) FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.k = b.y AND "
    "c.k < a.x)) AS n FROM a",
    "correlated over groups": "SELECT k, count(*), (SELECT max(y) FROM b WHERE b.k = a.k) FROM a GROUP BY k",
    "correlated union": "SELECT x, (SELECT sum(v) FROM (SELECT y AS v FROM b WHERE b.k = a.k UNION ALL SELECT 1 FROM c WHERE "
    "c.k = a.x) AS u) FROM a",
    "empty group tested": "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM (SELECT count(*) AS n FROM b WHERE b.k = a.k) AS t WHERE "
    "n = 0)",
    "exists": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > 1)",
    "not exists": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "exists by inequality": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM a AS o WHERE o.k = a.k AND o.x <> a.x)",
    "not exists by inequality": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.y > a.x)",
    "exists of a join": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.y = c.k WHERE b.k = a.k AND c.k > 1)",
    "exists as a value": "SELECT x, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS e FROM a",
    "exists or": "SELECT * FROM a WHERE x = 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y = 2)",
    "exists uncorrelated": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE y = 4) AND NOT EXISTS (SELECT 1 FROM c WHERE k = "
    "5)",
    "in": "SELECT * FROM a WHERE k IN (SELECT k FROM b WHERE y > 1)",
    "not in": "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 1)",
    "not in without null": "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 1 AND k IS NOT NULL)",
    "not in nothing": "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 1000)",
    "constant in": "SELECT x FROM a WHERE 3 IN (SELECT y FROM b) OR 1 NOT IN (SELECT y FROM b) OR x = 1",
    "outer column as a result": "SELECT x, 5 > ANY (SELECT a.x FROM b WHERE b.k = a.k) AS t FROM a",
    "in as a value": "SELECT k, k IN (SELECT k FROM b) AS i, k NOT IN (SELECT y FROM b WHERE y < 3) AS n FROM a",
    "in correlated": "SELECT * FROM a WHERE x IN (SELECT y FROM b WHERE b.k = a.k)",
    "not in correlated": "SELECT * FROM a WHERE x NOT IN (SELECT y FROM b WHERE b.k = a.k)",
    "rows in": "SELECT * FROM a WHERE (k, x) IN (SELECT k, y FROM b)",
    "any": "SELECT * FROM a WHERE x > ANY (SELECT y FROM b)",
    "all": "SELECT * FROM a WHERE x >= ALL (SELECT y FROM b WHERE y IS NOT NULL)",
    "all correlated": "SELECT k, x, x > ALL (SELECT y FROM b WHERE b.k = a.k) AS t FROM a",
    "any as a value": "SELECT x, x = ANY (SELECT y FROM b) AS t, x <> ALL (SELECT y FROM b) AS u FROM a",
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r",
    "reachability": "WITH RECURSIVE r AS (SELECT k AS f, y AS t FROM b WHERE y IS NOT NULL AND k IS NOT NULL UNION "
    "SELECT r.f, b.y FROM r JOIN b ON r.t = b.k WHERE b.y IS NOT NULL) SELECT f, t FROM r",
    "recursion and groups": "WITH RECURSIVE r AS (SELECT k AS f, y AS t FROM b UNION "
    "SELECT r.f, b.y FROM r JOIN b ON r.t = b.k) SELECT f, count(*) FROM r GROUP BY f",
    "row number": "SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x, s, d) FROM (SELECT DISTINCT * FROM a)",
    "ranks": "SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x DESC), dense_rank() OVER (PARTITION BY k ORDER "
    "BY x) FROM a",
    "running sums": "SELECT k, y, sum(y) OVER (PARTITION BY k ORDER BY y), count(*) OVER (PARTITION BY k), avg(y) OVER () "
    "FROM b",
    "frames": "SELECT k, y, sum(y) OVER (ORDER BY k, y, p, f ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM (SELECT "
    "DISTINCT * FROM b)",
    "lag and lead": "SELECT k, x, lag(x) OVER (PARTITION BY k ORDER BY x, s, d), lead(x, 2, -1) OVER (PARTITION BY k "
    "ORDER BY x, s, d) FROM (SELECT DISTINCT * FROM a)",
    "first and last value": "SELECT k, x, first_value(x) OVER (PARTITION BY k ORDER BY x), last_value(x) OVER (PARTITION BY k "
    "ORDER BY x) FROM a",
    "window over groups": "SELECT k, sum(x) AS t, rank() OVER (ORDER BY sum(x) DESC) FROM a GROUP BY k",
    "qualify": "SELECT k, x FROM a QUALIFY rank() OVER (PARTITION BY k ORDER BY x DESC) = 1",
    "top": "SELECT k, x FROM a ORDER BY x DESC, k LIMIT 4",
    "top with offset": "SELECT x, k FROM a ORDER BY x, k LIMIT 3 OFFSET 2",
    "top nulls first": "SELECT x FROM a ORDER BY x NULLS FIRST LIMIT 3",
    "top by text": "SELECT s, x FROM a ORDER BY s DESC, x LIMIT 3",
    "top of union": "SELECT k FROM a UNION ALL SELECT k FROM b ORDER BY k LIMIT 5",
    "offset alone": "SELECT x, k FROM a ORDER BY x, k OFFSET 4",
    "limit zero": "SELECT * FROM a LIMIT 0",
    "top in a subquery": "SELECT count(*), sum(x) FROM (SELECT x FROM a ORDER BY x DESC LIMIT 3) AS t",
    "disjunction of joins": "SELECT a.x, b.y FROM a, b WHERE (a.k = b.k AND a.x > 3) OR (a.k = b.k AND b.y < 2)",
    "disjunction over relations": "SELECT a.x, b.y, c.t FROM a, b, c WHERE a.k = b.k AND b.y = c.k AND "
    "((a.s = 'north' AND c.t = 'south') OR (a.s = 'south' AND c.t = 'north'))",
    "constant conditions": "SELECT x FROM a WHERE 1 = 1 AND (2 > 3 OR x > 1)",
    "false condition": "SELECT x FROM a WHERE 1 > 2",
    "group by all": "SELECT k, s, count(*) FROM a GROUP BY ALL",
    "star exclude": "SELECT * EXCLUDE (d) FROM a",
    "like a column": "SELECT s, s LIKE left(s, 1) || '%' AS p, s NOT LIKE t AS n FROM a JOIN c USING (k)",
    "padding and patterns": "SELECT lpad(s, 4, 'xy'), rpad(s, 7, ' '), repeat(s, 2), regexp_matches(s, '^[a-n]') FROM a",
    "powers": "SELECT sqrt(y), ln(y + 1), exp(y), power(y, 2), y ^ 2, log10(y + 1) FROM b",
    "bits": "SELECT x & 3, x | 4, xor(x, 1), ~x FROM a WHERE x >= 0",
    "differences of dates": "SELECT date_diff('day', d, DATE '2024-06-15'), date_diff('month', d, DATE '2025-01-01'), "
    "date_diff('year', d, DATE '2025-01-01'), date_part('quarter', d) FROM a",
    "spread": "SELECT k, stddev(x), var_samp(x), stddev_pop(x), var_pop(x), count_if(x > 3) FROM a GROUP BY k",
    "distinct on": "SELECT DISTINCT ON (k) k, x FROM a ORDER BY k, x DESC",
    "rollup": "SELECT k, s, count(*), sum(x) FROM a GROUP BY ROLLUP (k, s)",
    "cube and sets": "SELECT k, s, count(*) FROM a GROUP BY GROUPING SETS ((k), (s), (k, s), ())",
    "cube": "SELECT k, s, x % 2 AS o, max(x) FROM a GROUP BY CUBE (k, s), o",
    "duplicate columns": "SELECT x, x, k AS x FROM a",
    "hash of everything": "SELECT count(*) FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
    "texts joined": "SELECT k, string_agg(s, '-' ORDER BY s), string_agg(DISTINCT s, ',' ORDER BY s DESC), string_agg(s, "
    "'' ORDER BY x DESC NULLS FIRST, s) FROM a GROUP BY k",
    "texts joined with a filter": "SELECT k, string_agg(s, ' ' ORDER BY s) FILTER (WHERE x > 2), count(*) FROM a GROUP BY k",
    "numbers joined": "SELECT string_agg(x, ',' ORDER BY x), group_concat(DISTINCT x ORDER BY x) FROM a",
    "median and quantiles": "SELECT k, median(x), quantile_cont(x, 0.3), quantile_disc(x, 0.25), quantile_disc(x, 0.5), "
    "quantile_disc(x, 0), quantile_disc(x,1) FROM a GROUP BY k",
    "quantiles of floats": "SELECT k, median(f), percentile_cont(0.75) WITHIN GROUP (ORDER BY f DESC), percentile_disc(0.75) "
    "WITHIN GROUP (ORDER BY f) FROM b GROUP BY k",
    "median without keys": "SELECT median(y), quantile_disc(p, 0.5), median(DISTINCT y) FROM b",
    "median of nothing": "SELECT median(y), string_agg('x', ',') FROM b WHERE y > 1000",
    "quantiles of text and dates": "SELECT k, quantile_disc(s, 0.5), quantile_disc(d, 0.9) FROM a GROUP BY k",
    "value at an extreme": "SELECT k, arg_max(x, row_number), max_by(s, row_number), arg_min(d, row_number) FROM (SELECT *, "
    "row_number() OVER (PARTITION BY k ORDER BY x,s,d) AS row_number FROM (SELECT DISTINCT * FROM a)) "
    "GROUP BY k",
    "first and last in an order":
    "SELECT k, first(x ORDER BY x), last(x ORDER BY x), first(x ORDER BY x DESC), last(x ORDER BY x "
    "NULLS FIRST), first(x ORDER BY x) FILTER (WHERE s = 'north'), any_value(x ORDER BY x DESC) FROM a "
    "GROUP BY k",
    "grouping of a rollup": "SELECT k, s, grouping(k), grouping(s), grouping(k, s), grouping_id(s, k), count(*) FROM a GROUP BY "
    "ROLLUP (k, s)",
    "grouping without sets": "SELECT k, grouping(k) FROM a GROUP BY k",
    "grouping in having": "SELECT k, s, sum(x), grouping(s) g FROM a GROUP BY CUBE (k, s) HAVING grouping(k, s) > 0 ORDER BY g",
    "subquery on the far side in on":
    "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.k = b.y)",
    "subquery on the near side in on": "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.x IN (SELECT c.k FROM c)",
    "subqueries in the on of a full join":
    "SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k AND a.x IN (SELECT c.k FROM c) AND b.y > (SELECT "
    "min(k) FROM c)",
    "subquery in the on of a right join": "SELECT a.x, b.y FROM a RIGHT JOIN b ON a.k = b.k AND a.x NOT IN (SELECT c.k FROM c)",
    "subquery over pairs in on":
    "SELECT a.x, a.s, b.y FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE c.k = a.x - "
    "b.y)",
    "subquery over pairs in the on of a full join":
    "SELECT a.x, a.s, b.y FROM a FULL JOIN b ON a.k = b.k AND a.x > (SELECT count(*) FROM c WHERE c.k < "
    "a.x AND c.k > b.y)",
    "subquery over pairs in the on of a right join":
    "SELECT a.x, a.s, b.y FROM a RIGHT JOIN b ON a.k = b.k AND a.x + b.y IN (SELECT k FROM c)",
    "subquery in on below groups":
    "SELECT a.k, count(b.y), count(*) FROM a LEFT JOIN b ON a.k = b.k AND EXISTS (SELECT 1 FROM c WHERE "
    "c.k = a.x - b.y) WHERE a.x > 1 GROUP BY a.k",
    "subquery in on that reads no side": "SELECT a.x, b.y FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM c WHERE c.q) AND a.k = b.y",
    "regular expressions": "SELECT regexp_replace(s, '[aeo]', '_', 'g'), regexp_extract(s, '(.)o', 1), s SIMILAR TO '[a-z]+', "
    "regexp_full_match(s, '.*h') FROM a",
}  # fmt: skip


STAGES = [
    "left join", "full join", "triangle", "group by", "count distinct", "float sums", "correlated top", "not in",
    "recursion and groups", "ranks", "frames", "rollup",
]  # fmt: skip
"""The constructs of which each makes other operators: these run in stages by day; at night all do."""
SPARK = ["left join", "count distinct", "not in", "ranks"]


@pytest.mark.executors(stages=STAGES, spark=SPARK)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_maintained_answer_equals_duckdb_at_every_epoch(name: str) -> None:
    query = CONSTRUCTS[name]
    changing = Changing(seed=len(name), workers=1 + len(name) % 2)
    changing.step(3, 9)
    view = changing.twins.engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
    assert view is not None
    for epoch in range(by_day_or_night(4, 6)):
        assert bag(view.rows()) == changing.twins.expected(query), f"{name} at epoch {epoch}: {query}"
        changing.step()
    changing.twins.check(query)
