"""The two syntaxes, and rules as both of them give them.

edn        EDN, the data notation of the thesis's queries: text to lists, vectors, symbols and values, each with its place
edn_rules  the thesis's EDN syntax: patterns `[?e :attribute ?v]`, rules `[(rule ?a ?b) ...]` and queries `[:find
grammar    the grammar of the textbook syntax: text to the parser's trees, or an error that says where the text leaves the
           grammar
ir         rules as both syntaxes give them: terms, literals, rules and programs, each with the place it was written at
textbook   the textbook syntax, as Soufflé writes it: text to rules, declarations and directives
"""
