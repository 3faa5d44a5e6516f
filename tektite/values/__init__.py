"""Column types, values as 64-bit words, schemas, and the dictionary of texts.

columns        converts rows, dicts, NumPy arrays, Arrow tables and pandas frames to columns
computed_once  a property that is computed when it is first read
dictionary     maps the id of a text back to the text
frames         tables for pandas, Polars and Arrow, of whatever has one
html           tables as HTML, for notebooks
schema         named and typed columns; converts whole tables to words and back
text_space     the memory of a dictionary
type_names     types by the names that Python, Arrow and SQL have for them
types          column types
words          converts a column of values to 64-bit integers and back
"""
