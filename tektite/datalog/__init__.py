"""Datalog: rules in two syntaxes, one meaning; built when somebody wants their answers, and kept up to date from then on.

evaluate/  from rules to collections, queries and goals; the rule store, attributes, fact files, `tektite datalog`
rules/     normal form, safety, strata, types, magic sets
syntax/    the two syntaxes, and rules as both of them give them
"""
