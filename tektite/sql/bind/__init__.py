"""Binding: resolves names and checks types, from sqlglot trees to logical plans.

bound               a query with known names and types
clause              binds the expressions of one clause: columns, subqueries, aggregates, windows
comparisons         binds comparisons: =, BETWEEN, IN, ANY and ALL, EXISTS, IS, LIKE
constant_sets       long lists of constants, read together
dates               functions of dates and timestamps
definitions         views that are only definitions, and property graphs
functions           types and functions of SQL, as expressions
joins               binds joins: conditions, and the columns that USING and NATURAL merge
library             more functions of numbers and texts: trigonometry, digests, characters
list_relations      UNNEST and table functions of JSON
long_sums           adds very long sums in groups, so that trees stay shallow
moments             functions that make intervals, times and moments; functions of bytes
named_relations     tables, views, definitions, and rows given to one statement
nested              lists, structs and JSON: literals, parts, functions
numbers             TRY_CAST, and functions of numbers that differ in DuckDB
ordered_aggregates  ordered aggregates: string_agg, quantiles, mode, first, last, arg_min, arg_max
pair_aggregates     covariance, correlation and linear regression
patterns            functions of a text and a constant regular expression
pivots              PIVOT and UNPIVOT, read as queries
property_graphs     GRAPH_TABLE, as the query over tables that it means
query               binds a query: from sqlglot's tree to a logical plan
recursion           WITH RECURSIVE: relations defined by themselves and each other
relations           FROM: tables, subqueries and constant rows
scalar              binds scalar expressions; errors point at their place
scope               which columns a name may mean, in a query and the queries around it
select              binds groups, windows, outputs, order and limit of a SELECT
stars               * and COLUMNS: the columns that an item of SELECT stands for
table_functions     generate_series, range and other functions of FROM
time_windows        TUMBLE, HOP and SESSION: rows with the windows of time that they fall into
window_arguments    what window functions are computed of: arguments, constants, types
window_frames       binds the frames of window functions
windows             binds window functions
zones               moments: casts by the session's time zone, AT TIME ZONE
"""
