"""The physical dataflow: scopes, the agenda that schedules them, and the operators.

arrange           arrange, and how other operators read an arrangement
deferred_keys     keys that wait for later moments
flow              one installed graph of operators, swept over intervals of epochs
graph             scopes, ports and the agenda: what runs next in one dataflow, and how chunks travel between nodes
join              pairs of updates that agree on a key, at the least upper bound of their times
journal           what is known of sweeps, kept for the last of them and told to listeners when one has ended
linear            projection, filter, negation, Python functions, and the accumulators of linear aggregates
loop              variables that feed back, and the way out of a scope
node              what every operator is, and all that an executor knows of it
output            functions that see changes pass
pipeline_actions  what happens to rows on their way through a pipeline: look-ups, subtraction, intersection
pipelines         one stateless way from the changes of each relation of a conjunction to the changes of its result
range_filter      the rows of a group whose value lies on one side of the group's bound, while both change
reduce            what each key's rows come to, kept as an arrangement
"""
