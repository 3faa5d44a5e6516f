"""Texts as bytes.

like     LIKE over the texts themselves, and how they begin: no result is remembered, so texts that never come again cost no
         memory
strings  their ids, and the table that finds a text by its id
"""
