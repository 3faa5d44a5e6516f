"""The two syntaxes, and their common form of rules.

components      `.comp` and `.init` replaced by the statements of each instance
conditions      conditions of #if
declared_types  types that a program declares: other names, unions, records, tagged values
edn             reads EDN: lists, vectors, symbols and values, with their places
edn_queries     queries in EDN, and what of their answer is wanted
edn_rules       the EDN syntax of the thesis: patterns, rules and queries
grammar         the grammar of the textbook syntax; errors say where the text leaves it
ir              rules in a common form: terms, literals, rules and programs, with their places
meaning         whether two rules mean the same
preprocessor    #include, #define, #ifdef
statements      declarations, directives, types and functors; a text as a whole
terms           bodies and terms of the textbook syntax
textbook        Soufflé's syntax: from text to rules, declarations and directives
"""
