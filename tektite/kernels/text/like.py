"""Matches LIKE patterns, and prefixes, against the texts themselves. Nothing is cached, so texts that never repeat cost no
memory.

A pattern is an array of words: the number of tokens, then the tokens. A token is a byte that the text must have there,
ANY_CHARACTER (any one character) or ANY_TEXT. Texts and patterns are UTF-8: a byte that continues a character begins no
match.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.expr.memo import add_missing
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import prefetch
from tektite.kernels.text.strings import HEADER, byte_at, length_at, position_of
from tektite.values.words import NULL

ANY_CHARACTER, ANY_TEXT = -1, -2


@inner
def _next_character(at, end):
    """Where the character after the one at `at` begins, or `end`."""
    at += 1
    while at < end and (byte_at(at) & 0xC0) == 0x80:
        at += 1
    return at


@inner
def _first_place(token, at, end):
    """Where a token fits first, from `at` on, or `end`. A token that is no byte fits at once."""
    while token >= 0 and at < end and byte_at(at) != token:
        at += 1
    return at


@inner
def matches(pattern, at, end):
    """Whether the bytes from `at` to `end` are as the pattern at address `pattern` says.

    What follows an ANY_TEXT is tried where it fits first and, if the rest of the pattern does not match then, one character
    later. An earlier ANY_TEXT never has to take more.
    """
    stop = load(pattern, 0) + 1
    token = 1
    again = 0  # the token after the last ANY_TEXT, and where it was tried last
    tried = at
    while True:
        if token == stop:
            if at == end:
                return True
        else:
            wanted = load(pattern, token)
            if wanted == ANY_TEXT:
                token += 1
                if token == stop:
                    return True
                at = _first_place(load(pattern, token), at, end)
                again, tried = token, at
                continue
            if at < end and wanted == ANY_CHARACTER:
                at = _next_character(at, end)
                token += 1
                continue
            if at < end and byte_at(at) == wanted:
                at += 1
                token += 1
                continue
        if again == 0 or tried >= end:
            return False
        tried = _first_place(load(pattern, again), _next_character(tried, end), end)
        at, token = tried, again


@inner
def find_texts(n, d, a, number, texts, missing):
    """Write where the texts of n ids lie in the heap of `texts` (see `strings`), 0 for NULL; ids that it lacks
    go into the set of missing arguments and give 0. Returns the heap, from which the texts are being fetched.
    """
    heap = load(texts, 2)
    for i in range(n):
        word = load(a, i)
        position = np.int64(0)
        if word != NULL:
            position = position_of(texts, word)
            if position == 0:
                add_missing(missing, number, word, 0, 0)
            else:
                prefetch(heap + position)
        store(d, i, position)
    return heap


@inner
def text_word_block(n, d, a, which, number, texts, missing):
    """Of the texts of n ids the bytes 7 * w to 7 * w + 6, with w the word at address `which`, as a number that orders as the
    bytes do; bytes behind a text's end count as 0.
    """
    heap = find_texts(n, d, a, number, texts, missing)
    skipped = 7 * load(which, 1)
    for i in range(n):
        position = load(d, i)
        result = NULL
        if position != 0:
            start = heap + position + HEADER
            end = start + length_at(heap + position)
            result = np.int64(0)
            for at in range(start + skipped, start + skipped + 7):
                result = (result << 8) | (np.int64(byte_at(at)) if at < end else 0)
        store(d, i, result)


@inner
def like_block(n, d, a, pattern, number, texts, missing):
    """Match the texts of n ids."""
    heap = find_texts(n, d, a, number, texts, missing)
    for i in range(n):
        position = load(d, i)
        result = NULL
        if position != 0:
            start = heap + position + HEADER
            result = 1 if matches(pattern, start, start + length_at(heap + position)) else 0
        store(d, i, result)
