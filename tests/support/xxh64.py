"""The slow, obvious twin of the text hash: XXH64 as it is specified, and its inverse for texts of 8 bytes."""

from __future__ import annotations

P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
WORD = 2**64


def rotate(word: int, left: int) -> int:
    return (word << left | word >> (64 - left)) % WORD


def lane_round(lane: int, word: int) -> int:
    return rotate((lane + word * P2) % WORD, 31) * P1 % WORD


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as an unsigned number."""
    at, end = 0, len(data)
    if end >= 32:
        lanes = [(seed + P1 + P2) % WORD, (seed + P2) % WORD, seed, (seed - P1) % WORD]
        while at + 32 <= end:
            lanes = [
                lane_round(lane, int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little"))
                for i, lane in enumerate(lanes)
            ]
            at += 32
        hashed = sum(rotate(lane, left) for lane, left in zip(lanes, (1, 7, 12, 18), strict=True)) % WORD
        for lane in lanes:
            hashed = ((hashed ^ lane_round(0, lane)) * P1 + P4) % WORD
    else:
        hashed = seed + P5
    hashed = (hashed + end) % WORD
    while at + 8 <= end:
        hashed ^= lane_round(0, int.from_bytes(data[at : at + 8], "little"))
        hashed = (rotate(hashed, 27) * P1 + P4) % WORD
        at += 8
    if at + 4 <= end:
        hashed ^= int.from_bytes(data[at : at + 4], "little") * P1 % WORD
        hashed = (rotate(hashed, 23) * P2 + P3) % WORD
        at += 4
    for byte in data[at:]:
        hashed = rotate(hashed ^ byte * P5 % WORD, 11) * P1 % WORD
    hashed = (hashed ^ hashed >> 33) * P2 % WORD
    hashed = (hashed ^ hashed >> 29) * P3 % WORD
    return hashed ^ hashed >> 32


def signed(word: int) -> int:
    return word - WORD if word >= WORD // 2 else word


def _unshift(word: int, right: int) -> int:
    """The x of which `word` is x ^ x >> right."""
    found = word
    for _ in range(64 // right):
        found = word ^ found >> right
    return found


def eight_bytes_with(hashed: int, seed: int) -> bytes:
    """The only 8 bytes whose XXH64 is `hashed`: every step is a bijection."""
    inverse_1, inverse_2, inverse_3 = (pow(prime, -1, WORD) for prime in (P1, P2, P3))
    word = _unshift(hashed % WORD, 32) * inverse_3 % WORD
    word = _unshift(word, 29) * inverse_2 % WORD
    word = _unshift(word, 33)
    word = rotate((word - P4) * inverse_1 % WORD, 64 - 27)
    word ^= seed + P5 + 8
    word = rotate(word * inverse_1 % WORD, 64 - 31) * inverse_2 % WORD
    return word.to_bytes(8, "little")


def colliding_texts(seed: int = 42) -> tuple[str, str]:
    """Two different texts with one hash."""
    number = 0
    while True:
        text = f"text {number}"
        try:
            return text, eight_bytes_with(xxh64(text.encode(), seed), seed).decode()
        except UnicodeDecodeError:
            number += 1


def text_with_narrow_id(seed: int = 42) -> str:
    """A text whose hash fits into 32 bits."""
    number = 1
    while True:
        try:
            return eight_bytes_with(number, seed).decode()
        except UnicodeDecodeError:
            number += 1
