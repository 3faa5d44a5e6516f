"""The physical dataflow: operators, the scopes that they run in, and the agenda that schedules them.

arrange           arrange sorts updates into a trace; readers give other operators its versions and changes
away              a part of a sweep that runs without the engine's lock
deferred_keys     keys that a reduction has to evaluate at later moments
errors            errors of rows: a second collection of a dataflow, beside its results
failures          what dataflows fail with
flow              `Dataflow`: one installed graph of operators, and its sweeps
function_node     calls users' functions with rows, while others use the engine
function_reduce   reductions by Python functions: of a group, or of many groups at once
graph             scopes, ports and edges; the agenda decides which node runs next
interrupts        interrupts by other threads wait while a dataflow works that has answered
join              join of two arrangements
joined_rows       a join that has come some way, and can be divided between workers
journal           records of the last sweeps, for listeners and `Engine.progress`
kept_results      results that are computed again while nobody reads them
linear            steps on edges: projection, filter, negation, accumulators of aggregates
loop              feedback into the next round, and the exit from a loop
near_reduce       reductions of ordered groups: what lies around a change is evaluated, not the group
node              `Node`: the contract between operators and executors
output            calls Python functions with changes
pipeline_actions  what a pipeline does with rows: fetch, subtract, intersect
pipelines         conjunctions by delta queries: one stateless pipeline for each relation
range_filter      rows on one side of their group's bound, while both change
reduce            reductions by key: what all share, and the built-in ones
succession        a dataflow continues the results of another one by another graph
work_log          how often each operator ran, for how long, and how many rows it received and sent
"""
