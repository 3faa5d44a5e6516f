"""Words as keys: equal where the values are, wherever a row is told from another by them.

Most types have one word for a value. 0.0 and -0.0 are equal and have two words; so do `1 month` and `30 days`, and lists and
structs with these inside. `key_words` gives one word for all equal values.
"""

from __future__ import annotations

import numpy as np

from tektite.values import composites, words
from tektite.values.dictionary import Dictionary
from tektite.values.types import Float, Type
from tektite.values.words import NULL, Words


def key_words(column: Words, type: Type, dictionary: Dictionary) -> Words:
    """The words of a column as keys. Adds the texts of keys to the dictionary: call it where texts are being added."""
    if type == Float:
        return words.float_keys(column)
    if not type.has_keys:
        return column
    ids, places = np.unique(column, return_inverse=True)
    nulls = int(len(ids) > 0 and ids[0] == NULL)
    found = dictionary.add(composites.key_texts(dictionary.lookup(ids[nulls:]), type))
    return np.concatenate((np.full(nulls, NULL, np.int64), found))[places]
