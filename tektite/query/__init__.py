"""Queries in Python: collections, aggregates, loops and `match`.

aggregate_calls        an aggregate as a plan is built from it
aggregates             aggregates as users write them: `count`, `sum` and the others
aggregation            the plan of aggregates of all kinds, for SQL and Python
builders               what languages make collections with, beside the public methods
collection             `Collection`: a query as a value, and all its operations
column_aggregates      the plan of aggregates of columns
columns                columns of an operator by name: numbers, projections, floats as keys
condition_joins        joins of two collections on any condition
derived                collections made of others, and checks of what they are made of
expression_aggregates  the aggregates that an expression is made of
group_functions        functions of many groups at once, over arrays of words
grouped                `Grouped`: groups of rows, and `agg`
grouping_sets          `GroupingSets`: groups by several sets of keys
interned_aggregates    sums, averages and lists of intervals, wide decimals and others
joined                 `Collection.join`: checks, and the join that does what is asked
joins                  joins of two operators by key, all pairs, by a bound that moves
limits                 the first rows of an order: `Sorted`, limits and offsets
loops                  `Loop` and `LoopVariable`
match                  `tk.match`: conjunctions of any number of clauses
memberships            filter(x.is_in(collection)), by SQL's IN and NOT IN
near_windows           window functions that are evaluated where rows change
number_series          series of numbers and elements of lists, for each row
ordered_groups         ordered aggregates of a group: texts joined, quantiles, mode, first
other_names            what other libraries call the methods of collections
outputs                what users give to `select` and `agg`, as named expressions
own_columns            `table["x"]`: a column of one collection
paired_aggregates      covariance, correlation and linear regression, as arithmetic over sums
reduction_methods      the methods of `Collection` that reduce groups
reductions             reductions of groups: distinct rows, extremes, top rows, functions
row_order              the order of a table's rows, for ORDER BY and `sort`
set_methods            the methods of `Collection` that put collections of the same columns together
set_operations         INTERSECT and EXCEPT
sql_methods            the methods of `Collection` that are read as SQL: windows of time, ASOF joins
window_calls           a window function and its frame
window_functions       window functions, for all changed partitions at once
windows                window functions of expressions: `over`, `rank`, `lag` and the others
"""
