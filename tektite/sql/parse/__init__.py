"""From text to sqlglot trees: parsing, tokens, places in a text, what is understood.

depth_limit      how deep a statement may nest
known_arguments  what of sqlglot's trees is understood: an argument of a node that is not listed here is refused, never
                 ignored
parser           duckDB's dialect of SQL as sqlglot reads it, and the few statements that it does not know
places           where in a statement something stands, and errors that show it: the line and a caret under the place
splitter         cut a text into statements at the semicolons that end them, as the text arrives line by line
tokens           what a statement's tokens say before sqlglot reads them: mistakes that it would let pass are found here, and
                 what it would not tell apart is written out
"""
