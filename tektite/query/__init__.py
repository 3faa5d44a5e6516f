"""How Python programs write queries: collections, aggregates, loops and `match`.

aggregates       aggregates of groups: `count`, `sum` and the others
builders         what languages make collections with, beside the public methods
collection       `Collection`: a query as a value, and all its operations
columns          columns of an operator by name: numbers, projections, floats as keys
group_functions  functions of many groups at once, over arrays of words
grouped          `Grouped`: groups of rows, and the plan of their aggregates
joins            joins of two operators: inner, left, semi, anti, by a bound that moves
loops            `Loop` and `LoopVariable`
match            `tk.match`: conjunctions of any number of clauses
reductions       reductions of groups: distinct rows, extremes, top rows, functions
"""
