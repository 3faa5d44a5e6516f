"""Datalog: rules in two syntaxes. A predicate is built when its answer is first wanted, and maintained from then on.

evaluate/  from rules to collections, queries and goals; the rule store, attributes, fact files, `tektite datalog`
rules/     normal form, safety, strata, types, magic sets
syntax/    the two syntaxes, and their common form of rules
"""
