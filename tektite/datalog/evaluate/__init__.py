"""From rules to collections, queries and goals; the rule store, attributes, fact files, `tektite datalog`.

attributes  facts [entity attribute value], each attribute a relation of its own over (e, v), or over e alone
bodies      the body of a rule as a collection of bindings: one column for each variable that is wanted
command     `tektite datalog FILE`: run a Soufflé program over fact files
evaluation  components in order, recursion as loops, every predicate a set
explain     what a predicate's answer is computed from, in which order, and what of it others share
fact_files  fact files in Soufflé's convention: one fact a line, columns between tabs, texts as they are
goals       its rules, rewritten for their arguments or not, and the evaluation of them
program     what one text registered, and the way to the answers of its predicates
queries     goals such as `tc("david", ?)` and `[:find
rule_store  what is registered, what is built of it, and who wants it
"""
