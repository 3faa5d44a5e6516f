"""Deliberate faults, one module a layer: each breaks one rule, and names the check that catches it.

fault        what a fault is, and ways to break a function
values       words, the dictionary, schemas
expressions  types, programs, texts
traces       times, spines, handles
storage      manifest, batch files, the epoch writer, clean-up
dataflow     operators and kernels
runtime      coordinator and threads
plans        conjunctions, what plans say of their rows
engine       constraints, inputs, catalog, views
sql          bind, rules, lower, statements
datalog      strata, safety, normal form, magic, records, choices
spark        feeds, ordering, freight, stages
"""
