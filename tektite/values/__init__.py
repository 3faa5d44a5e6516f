"""Column types, values as 64-bit words, schemas, and the dictionary of texts.

columns     data in any form that users have it in, as columns: rows, dicts, NumPy, Arrow, pandas
dictionary  from the id of a text back to the text
schema      the ordered, named, typed columns of a collection, and the way of whole tables to words and back
types       the types a column can have
words       a column of values of any type as 64-bit integers, and back
"""
