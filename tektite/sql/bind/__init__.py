"""Binding: every name resolved, every type checked, from sqlglot trees to logical plans.

bound               a query whose names and types are known
clause              what its expressions may refer to, and the subqueries, aggregates and windows found in them
dates               SQL's functions of dates and timestamps, in terms of ours
functions           SQL's functions and types, in terms of ours
intervals           lengths of time that dates and timestamps move by
long_sums           sums of very many terms, as programs write them: added in groups, so that they are no deep trees
named_relations     tables, views, definitions, and rows that are given to one statement alone
ordered_aggregates  binding aggregates of values in an order: string_agg, median and quantiles, mode, first and last, arg_min
                    and arg_max
patterns            functions of a text and a constant regular expression
query               from sqlglot's tree to a logical plan, with every name resolved and every type checked
recursion           relations defined by themselves and each other, as least solutions
relations           tables, subqueries, constant rows and the joins between them
scalar              from sqlglot's tree of an expression to an expression of ours, typed, or an error that points at it
scope               which columns a name may mean in a query, and in the queries around it
select              binding what a SELECT makes of the rows that FROM and WHERE gave: groups, windows, outputs, order and
                    limit
window_calls        what a window function computes, and of which rows around each one: its frame
windows             binding window functions
"""
