"""How a conjunction is kept up to date: pure functions from `Match` to a strategy, an order, and what to render.

assemble   from pipelines on paper to pipelines in a dataflow: arrangements to read, layouts of rows, actions and the steps
           between
binary     join at a time
clauses    what clauses say, as plans: their filters, the collections that negated ones look into, the predicates that are due
explain    what was decided for a conjunction, as lines of text
order      in which order the clauses of a conjunction are joined
pipelines  for each clause one pipeline from its changes to the changes of the result
render     the strategy chosen becomes nodes, and what was decided becomes text for `explain`
strategy   which strategy keeps a conjunction up to date
"""
