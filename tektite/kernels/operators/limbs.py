"""Exact sums of floats, as integers in limbs. Sums do not depend on the order, and are rounded once, when they are read.

A finite double is an integer times 2**-1074. BINS bins hold 32 binary places each, the lowest at 2**-1074; a double
fills three bins in a row at most, and gives each a *limb* of less than 2**32 in size that carries its sign. Limbs of a
bin are summed as integers, which is exact for two thousand million floats. Three more bins count the infinities and
NaN. The accumulators of one float column are one word for each bin.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, store
from tektite.values.words import NAN

BINS = 66
PLUS_INFINITY = 66
MINUS_INFINITY = 67
NOT_A_NUMBER = 68
LIMBS = 69

DIGITS = BINS + 2
"""Words that rounding works in: one below the bins, for what a division leaves; the bins; the carry out of them."""

_LOW = 0xFFFFFFFF
_MAGNITUDE = 2**63 - 1
_INFINITY = 2047 << 52
_HIDDEN = 1 << 52
_FEW = 2**31
_NAN = int(NAN)


@inner
def limbs_of(word):
    """The first bin that a float's word fills, and the limbs of that bin and the two above it. Zeros have no limb."""
    bits = word if word >= 0 else word ^ _MAGNITUDE
    exponent = (bits >> 52) & 2047
    mantissa = bits & (_HIDDEN - 1)
    if exponent == 2047:
        if mantissa != 0:
            return NOT_A_NUMBER, 1, 0, 0
        return PLUS_INFINITY if word >= 0 else MINUS_INFINITY, 1, 0, 0
    if exponent > 0:
        mantissa |= _HIDDEN
        exponent -= 1
    shift = exponent & 31
    sign = 1 if word >= 0 else -1
    low = (mantissa << shift) & _LOW
    middle = (mantissa >> (32 - shift)) & _LOW
    high = mantissa >> 32 >> (32 - shift)
    return exponent >> 5, sign * low, sign * middle, sign * high


@inner
def carry_limbs(limbs, digits):
    """Write the size of a sum to `digits` as digits of 32 bits, the lowest bin's at 1. Returns the sum's sign:
    -1, 0 or 1.
    """
    store(digits, 0, 0)
    carry = 0
    some = 0
    for k in range(BINS):
        limb = load(limbs, k)
        # The halves are added apart, since a limb may be as large as a word can hold.
        low = (limb & _LOW) + carry
        store(digits, 1 + k, low & _LOW)
        some |= low & _LOW
        carry = (low >> 32) + (limb >> 32)
    sign = 1 if carry > 0 or some != 0 else 0
    if carry < 0:
        sign = -1
        borrow = 0
        for k in range(1, BINS + 1):
            low = borrow - load(digits, k)
            store(digits, k, low & _LOW)
            borrow = low >> 32
        carry = borrow - carry
    store(digits, BINS + 1, carry)
    return sign


@inner
def divide_digits(digits, divisor):
    """Divide by a positive number, down to the digit below the bins. Returns the remainder."""
    rest = 0
    for k in range(BINS + 1, -1, -1):
        digit = load(digits, k)
        if divisor < _FEW:
            rest = (rest << 32) | digit
            store(digits, k, rest // divisor)
            rest %= divisor
        else:
            # Bit by bit, and without doubling what may not be doubled: rest < divisor < 2**63.
            quotient = 0
            for place in range(31, -1, -1):
                bit = (digit >> place) & 1
                missing = divisor - rest - bit
                quotient <<= 1
                if rest >= missing:
                    rest -= missing
                    quotient |= 1
                else:
                    rest += rest + bit
            store(digits, k, quotient)
    return rest


@inner
def round_digits(digits, rest):
    """The bits of the double nearest to `digits`, ties to even. A `rest` that is not 0 stands for something behind the digits."""
    top = BINS + 1
    while top > 0 and load(digits, top) == 0:
        top -= 1
    place = 32 * top - 1
    digit = load(digits, top)
    while digit > 0:
        digit >>= 1
        place += 1
    # The double's last place: 52 below its first, but not below 2**-1074, the place 32.
    last = max(place - 52, 32)
    exponent = last - 32
    if exponent >= 2046:
        return _INFINITY
    k = last >> 5
    shift = last & 31
    mantissa = (load(digits, k) >> shift) | (load(digits, k + 1) << (32 - shift))
    if shift > 11:
        mantissa |= load(digits, k + 2) << (64 - shift)
    k = (last - 1) >> 5
    shift = (last - 1) & 31
    if (load(digits, k) >> shift) & 1 != 0:
        more = rest != 0 or (mantissa & 1) != 0 or load(digits, k) & ((1 << shift) - 1) != 0
        while not more and k > 0:
            k -= 1
            more = load(digits, k) != 0
        if more:
            mantissa += 1
    # The hidden bit, if it is there, adds one to the exponent; so does a mantissa that was rounded up to 2**53.
    return min((exponent << 52) + mantissa, _INFINITY)


@inner
def limbs_word(limbs, divisor, digits):
    """The word of the double nearest to the sum whose limbs are at the address `limbs`, divided by `divisor`, which is not 0.
    `digits` is room to round in: DIGITS words.

    NaN if there is a NaN, or if there are infinities of both signs; an infinity if there is one.
    """
    plus = load(limbs, PLUS_INFINITY)
    minus = load(limbs, MINUS_INFINITY)
    # Infinities that were retracted but never inserted count with the other sign.
    above = plus > 0 or minus < 0
    below = plus < 0 or minus > 0
    if load(limbs, NOT_A_NUMBER) != 0 or (above and below):
        return _NAN
    bits = _INFINITY
    sign = 1 if above else -1
    if not above and not below:
        sign = carry_limbs(limbs, digits)
        if sign == 0:
            return 0
        rest = 0
        if divisor != 1:
            rest = divide_digits(digits, abs(divisor))
        bits = round_digits(digits, rest)
    if (sign < 0) != (divisor < 0):
        return -1 - bits
    return bits
