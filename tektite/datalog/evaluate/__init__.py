"""From rules to collections, queries and goals; the rule store, attributes, fact files, `tektite datalog`.

attributes      attributes: facts [entity attribute value], one relation for each attribute
bodies          a rule's body as a collection of bindings, one column per variable
command         `tektite datalog FILE`: run a Soufflé program over fact files
evaluation      evaluates components in order, recursion as loops, predicates as sets
explain         explains how a predicate is computed, and what is shared
fact_files      reads and writes Soufflé's fact files
fact_stores     facts in JSON files and SQLite databases
goals           evaluates a goal: its rules, rewritten for their arguments or not
heads           facts, and columns computed from bindings
kept_rows       least and greatest values, and choices
places          the line and column of an error, for programs
program         one registered text, and the views of its predicates
pulls           pull patterns: nested dicts that stay up to date
queries         goals `tc("david", ?)` and queries `[:find ...]`
record_files    records in fact files
registered      what is registered, and checks of a text against it
relation_files  which file a directive names, in which format
rule_store      registered rules, what is built of them, and their readers
spread          median, variance and standard deviation of groups
"""
