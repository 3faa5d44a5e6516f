"""What queries are written with in Python: collections, aggregates, `match`.

aggregates       what `group_by(...).agg(...)` takes
collection       what a Python user writes dataflows with
constants        rows of constants as a collection
group_functions  functions of whole groups, computed for many groups at once over arrays of words: what
                 `Collection._reduce_groups` takes
match            conjunctions of any number of clauses: `match`, with every mistake reported where it is made
"""
