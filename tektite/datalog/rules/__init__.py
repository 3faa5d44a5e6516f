"""Checks and rewrites of rules: normal form, safety, strata, types, magic sets.

binding      which literals of a body give some variables their values
equivalence  the closure of equivalence relations
expressions  terms as expressions over columns that are named like the variables
functors     functions in Python
magic        goal-directed evaluation by magic sets
monotone     checks least and greatest values in recursion
normal_form  rules whose bodies are plain conjunctions
patterns     patterns that depend on the attributes that there are
ranges       ranges of numbers as predicates
records      records and tagged values as functions of texts
safety       checks that every variable of a rule has values
scopes       which variables of an aggregate are outer, witnesses, or its own
strata       orders predicates by dependency, and finds recursive groups
subsumption  subsumption that compares several columns
types        infers the types of predicates
unfold       replaces an atom by the body of the one rule that defines it
unify        merges variables that a rule equates
"""
