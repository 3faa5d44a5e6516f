"""Texts as bytes.

collection  collects texts that nobody uses
ids         ids of texts, and loads, stores and copies of bytes
like        matches LIKE patterns against texts, without a memo
strings     the table that finds a text by its id
"""
