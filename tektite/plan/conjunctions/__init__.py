"""Strategies for conjunctions: pure functions from `Match` to a strategy, an order and what to render.

assemble   makes nodes of planned pipelines: arrangements, layouts of rows, actions and the steps between them
binary     the binary strategy: joins of two
clauses    filters of clauses, sets of negated clauses, predicates whose variables are bound
explain    prints the decisions for a conjunction
order      in which order the clauses of a conjunction are joined
pipelines  the delta and Hector strategies: one pipeline for each clause
render     makes nodes of the chosen strategy, and text for `explain`
strategy   chooses the strategy
"""
