"""Checks and rewrites of rules: normal form, safety, strata, types, magic sets.

binding      which literals of a body give some variables their values
equivalence  the closure of equivalence relations
expressions  terms as expressions over columns that are named like the variables
functors     functions in Python
magic        goal-directed evaluation: rules rewritten so that they derive only what some arguments ask for (magic sets)
monotone     least and greatest values in recursion: allowed where a better value can only lead to better ones
normal_form  rules whose bodies are plain conjunctions
patterns     patterns that depend on the attributes that there are
ranges       ranges of numbers as predicates
records      records and tagged values as functions of texts
safety       every variable of a rule gets its values from a positive atom, or is computed from such variables
scopes       which variables of an aggregate are outer, witnesses, or its own
strata       which predicates must be known before which, and which are defined through each other
subsumption  subsumption that compares several columns
types        from what is known of some columns, through the rules, to all others
unfold       a rule's atom replaced by the body of the one rule that defines it
unify        where a rule says that two variables are equal, one of them stands for both
"""
