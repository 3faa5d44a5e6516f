"""The id of a text, and loads, stores, copies and comparisons of bytes.

The id of a text is XXH64 with seed 42 of its UTF-8 bytes, the value that Spark's `xxhash64` gives for the string; the one hash
that would be NULL counts as the word after NULL.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.toolchain import intrinsic, ir, types
from tektite.values.words import NULL

SEED = 42

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(SEED)
_START_1 = np.uint64((SEED + 0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
_START_2 = np.uint64((SEED + 0xC2B2AE3D27D4EB4F) % 2**64)
_START_4 = np.uint64((SEED - 0x9E3779B185EBCA87) % 2**64)
_AFTER_NULL = np.int64(NULL + 1)


def _loader(bits: int) -> Any:
    """An intrinsic that reads `bits` bits at any address, aligned or not, as an unsigned number."""

    @intrinsic
    def load_bits(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

        return types.uint64(types.int64), generate

    return load_bits


def _storer(bits: int) -> Any:
    """An intrinsic that writes the low `bits` bits of a word to any address, aligned or not."""

    @intrinsic
    def store_bits(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            narrow = builder.trunc(args[1], ir.IntType(bits)) if bits < 64 else args[1]
            builder.store(narrow, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.uint64), generate

    return store_bits


load_8, load_32, load_64 = _loader(8), _loader(32), _loader(64)
store_8, store_32, store_64 = _storer(8), _storer(32), _storer(64)


@inner
def _rotate(word, left):
    """Rotate a word to the left by so many bits."""
    return (word << np.uint64(left)) | (word >> np.uint64(64 - left))


@inner
def _round(lane, word):
    """One round of XXH64: mix a word into a lane."""
    return _rotate(lane + word * _PRIME_2, 31) * PRIME_1


@inner
def _merge_lane(hashed, lane):
    """Mix a lane of XXH64 into the hash."""
    return (hashed ^ _round(np.uint64(0), lane)) * PRIME_1 + _PRIME_4


@inner
def text_id(at, length):
    """The id of the `length` bytes at address `at`."""
    end = at + length
    if length >= 32:
        lane_1, lane_2, lane_3, lane_4 = _START_1, _START_2, _SEED, _START_4
        while at + 32 <= end:
            lane_1 = _round(lane_1, load_64(at))
            lane_2 = _round(lane_2, load_64(at + 8))
            lane_3 = _round(lane_3, load_64(at + 16))
            lane_4 = _round(lane_4, load_64(at + 24))
            at += 32
        hashed = _rotate(lane_1, 1) + _rotate(lane_2, 7) + _rotate(lane_3, 12) + _rotate(lane_4, 18)
        hashed = _merge_lane(hashed, lane_1)
        hashed = _merge_lane(hashed, lane_2)
        hashed = _merge_lane(hashed, lane_3)
        hashed = _merge_lane(hashed, lane_4)
    else:
        hashed = _SEED + _PRIME_5
    hashed += np.uint64(length)
    while at + 8 <= end:
        hashed = _rotate(hashed ^ _round(np.uint64(0), load_64(at)), 27) * PRIME_1 + _PRIME_4
        at += 8
    if at + 4 <= end:
        hashed = _rotate(hashed ^ (load_32(at) * PRIME_1), 23) * _PRIME_2 + _PRIME_3
        at += 4
    while at < end:
        hashed = _rotate(hashed ^ (load_8(at) * _PRIME_5), 11) * PRIME_1
        at += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _PRIME_2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _PRIME_3
    word = np.int64(hashed ^ (hashed >> np.uint64(32)))
    return _AFTER_NULL if word == NULL else word


@inner
def copy_bytes(source, target, length):
    """Copy bytes."""
    i = 0
    while i + 8 <= length:
        store_64(target + i, load_64(source + i))
        i += 8
    while i < length:
        store_8(target + i, load_8(source + i))
        i += 1


@inner
def same_bytes(left, right, length):
    """Whether bytes are the same."""
    i = 0
    while i + 8 <= length:
        if load_64(left + i) != load_64(right + i):
            return False
        i += 8
    while i < length:
        if load_8(left + i) != load_8(right + i):
            return False
        i += 1
    return True
