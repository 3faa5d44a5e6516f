"""What queries are written with in Python: collections, aggregates, `match`.

aggregates       what `group_by(...).agg(...)` takes
collection       `Collection`, `Grouped`, `Loop`: how users write queries
group_functions  functions of many groups at once, over arrays of words
match            `tk.match`: conjunctions of any number of clauses
"""
