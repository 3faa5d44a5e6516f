"""Texts as bytes.

like     matches LIKE patterns against texts, without a memo
strings  ids of texts, and the table that finds a text by its id
"""
