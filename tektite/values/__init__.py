"""Column types, values as 64-bit words, schemas, and the dictionary of texts.

arguments      whole numbers and truth values that callers pass
columns        converts rows, dicts, NumPy arrays, Arrow tables and pandas frames to columns
composites     lists, structs, intervals and other values that no word holds, as texts
computed_once  a property that is computed when it is first read
equal_keys     words that are equal where values are
dictionary     maps the id of a text back to the text
frames         tables for pandas, Polars and Arrow, of whatever has one
html           tables as HTML, for notebooks
interval_text  intervals and bytes as people write them
intervals      intervals as Python values
python_values  Python's values of types that Arrow would guess, as Arrow arrays
schema         named and typed columns; converts whole tables to words and back
shared_values  one of equal values
text_space     the memory of a dictionary
text_table     tables as text, for terminals
type_names     types by the names that Python, Arrow and SQL have for them
types          column types
words          converts a column of values to 64-bit integers and back
"""
