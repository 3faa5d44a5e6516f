"""The steps of an expression program: each is one loop over a block of words.

A step reads up to three operands and writes its result, all given by address; operands never overlap the result,
so that the loops vectorise. Every step is strict in NULL unless its line below says otherwise. A step that can
fail returns whether some row did; the rows that failed hold an arbitrary word.

    ADD SUB MUL             a op b; fails where the result leaves -extra..extra
    MUL_FLOOR               the floor of a * b / extra, with extra > 0; fails where it has more than 18 digits
    FLOORDIV MOD            floor semantics; NULL where b is 0
    ROUND_DIV               a / b to the nearest integer, halves away from zero; b > 0
    ABS SIGN                of an integer (of a float's order-preserving word, too, for SIGN)
    LEAST GREATEST          of two words; NULLs are ignored
    INT_TO_FLOAT            a / extra, as a float
    FLOAT_TO_INT            a * b (b a float) to the nearest integer, halves to even; fails outside -extra..extra
    FADD FSUB FMUL FDIV FFLOORDIV FMOD FABS     on floats; a division by zero is NULL
    FLOAT_KEY               a float's word with -0.0 made 0.0: equal words are equal numbers
    EQ NE LT LE             of words, as 0 or 1
    COMPARE_INT_FLOAT       -1, 0, 1 as the integer a is less than, equal to, greater than the float b; exact
    SCALE_SATURATED         a * b, or the greatest or least word where that overflows: for comparisons
    AND OR NOT              three-valued
    IS_NULL NOT_TRUE        never NULL
    SELECT                  b where a is 1, else c
    COALESCE COPY           a, or b where it is NULL; a
    BIT_AND BIT_OR BIT_XOR SHIFT_LEFT SHIFT_RIGHT   fail where the result has no word or the shift is negative
    HASH                    the hash a mixed with the word b; NULL counts as a word
    DATE_FIELD              field `extra` (YEAR, QUARTER, MONTH, DAY) of the day number a
    TRUNCATE_DATE           the first day of a's year, quarter, month or week
    ADD_MONTHS              the day number a moved by b months, to the month's end at most; fails outside -extra..extra
    CHECK_PARSED            a; fails where a is NULL though b is not
    MAP1 MAP2 MAP3 MEMBER   through memo `extra`: see `tektite.kernels.expr.interpreter`
    LIKE                    the text of id a, by pattern `extra`: see `tektite.kernels.text.like`
    TEXT_WORD               some bytes of the text of id a, as a number: which ones says table `extra`
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import bits_from_float, float_from_bits, load, store
from tektite.kernels.operators.wide import product_high
from tektite.kernels.toolchain import intrinsic, types
from tektite.values.words import NULL

(
    ADD, SUB, MUL, MUL_FLOOR, FLOORDIV, MOD, ROUND_DIV, ABS, SIGN, LEAST, GREATEST,
    INT_TO_FLOAT, FLOAT_TO_INT, FADD, FSUB, FMUL, FDIV, FFLOORDIV, FMOD, FABS, FLOAT_KEY,
    EQ, NE, LT, LE, COMPARE_INT_FLOAT, SCALE_SATURATED,
    AND, OR, NOT, IS_NULL, NOT_TRUE, SELECT, COALESCE, COPY,
    BIT_AND, BIT_OR, BIT_XOR, SHIFT_LEFT, SHIFT_RIGHT, HASH,
    DATE_FIELD, TRUNCATE_DATE, ADD_MONTHS, CHECK_PARSED,
    MAP1, MAP2, MAP3, MEMBER, LIKE, TEXT_WORD,
) = range(51)  # fmt: skip

YEAR, QUARTER, MONTH, DAY, WEEK = range(5)

GREATEST_WORD = 2**63 - 1
GREATEST_DECIMAL = 10**18 - 1
MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # every bit of a float but its sign
CANONICAL_NAN = 0x7FF8000000000000
MAX_MONTHS = 10**11  # far beyond every date, far from overflowing


@intrinsic
def multiply_overflows(typing_context: Any, left: Any, right: Any) -> Any:
    """1 if the product of two int64 does not fit in 64 bits, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        both = builder.smul_with_overflow(args[0], args[1])
        return builder.zext(builder.extract_value(both, 1), context.get_value_type(types.int64))

    return types.int64(types.int64, types.int64), generate


@inner
def float_of(word):
    """The float of an order-preserving word."""
    return float_from_bits(word if word >= 0 else word ^ MAGNITUDE)


@inner
def word_of(value):
    """The order-preserving word of a float. All NaN have the same."""
    bits = bits_from_float(value)
    word = bits if bits >= 0 else bits ^ MAGNITUDE
    return CANONICAL_NAN if value != value else word


@inner
def civil(days):
    """(year, month, day) of a day number counted from 1970-01-01, in the proleptic Gregorian calendar.

    Eras of 400 years have 146097 days; a year that starts in March has its leap day at the end.
    """
    shifted = days + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * of_year + 2) // 153
    day = of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    return year, month, day


@inner
def days_of_civil(year, month, day):
    """The day number of a date: the inverse of `civil`."""
    march_year = year - (1 if month <= 2 else 0)
    era = march_year // 400
    year_of_era = march_year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year
    return era * 146097 + of_era - 719468


@inner
def wide_floor(high, low, divisor):
    """The floor of a 128-bit number divided by 0 < divisor < 2**60, or NULL if it does not fit one word.

    A number of more than one word is divided by hand: its size, four bits at a time, so that a rest and four bits fit 64.
    """
    if high == low >> 63:
        return low // divisor
    negative = high < 0
    if negative:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    if high >= divisor:
        return NULL
    rest = np.uint64(high)
    by = np.uint64(divisor)
    quotient = np.uint64(0)
    for shift in range(60, -4, -4):
        rest = (rest << np.uint64(4)) | ((np.uint64(low) >> np.uint64(shift)) & np.uint64(15))
        digit = rest // by
        rest -= digit * by
        quotient = (quotient << np.uint64(4)) | digit
    if quotient >= np.uint64(GREATEST_WORD):
        return NULL
    size = np.int64(quotient)
    if negative:
        return -size - (1 if rest != np.uint64(0) else 0)
    return size


@inner
def integer_step(op, n, d, a, b, extra):
    """Steps on integers that can fail or divide."""
    bad = False
    if op == ADD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x + y
            null = (x == NULL) | (y == NULL)
            over = (((x ^ r) & (y ^ r)) < 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == SUB:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x - y
            null = (x == NULL) | (y == NULL)
            over = (((x ^ y) & (x ^ r)) < 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == MUL:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            r = x * y
            null = (x == NULL) | (y == NULL)
            over = (multiply_overflows(x, y) != 0) | (r > extra) | (r < -extra)
            bad |= over & (not null)
            store(d, i, NULL if null else r)
    elif op == MUL_FLOOR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            r = NULL if null else wide_floor(product_high(x, y), x * y, extra)
            bad |= ((r > GREATEST_DECIMAL) | (r < -GREATEST_DECIMAL)) & (not null)
            store(d, i, r)
    elif op == FLOORDIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL) | (y == 0)
            store(d, i, NULL if null else x // (1 if null else y))
    elif op == MOD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL) | (y == 0)
            divisor = 1 if null else y
            store(d, i, NULL if null else x - (x // divisor) * divisor)
    elif op == ROUND_DIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            size = abs(x)
            quotient = size // y
            rest = size - quotient * y
            if rest >= y - rest:
                quotient += 1
            store(d, i, NULL if x == NULL else (quotient if x >= 0 else -quotient))
    elif op == ABS:
        for i in range(n):
            x = load(a, i)
            store(d, i, abs(x))  # |NULL| wraps to NULL
    elif op == SIGN:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else (1 if x > 0 else 0) - (1 if x < 0 else 0))
    elif op == LEAST:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            smaller = x if x < y else y
            store(d, i, (x if x > y else y) if smaller == NULL else smaller)
    else:  # GREATEST: NULL is the least word
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, x if x > y else y)
    return bad


@inner
def float_step(op, n, d, a, b, extra):
    """Steps on floats and between floats and integers."""
    bad = False
    if op == INT_TO_FLOAT:
        divisor = float(extra)
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else word_of(float(x) / divisor))
    elif op == FLOAT_TO_INT:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            value = float_of(x) * float_of(y)
            # beyond these bounds the conversion to an integer is undefined
            fits = (value < 9223372036854775808.0) & (value > -9223372036854775808.0)
            r = int(np.rint(value if fits else 0.0))
            bad |= ((not fits) | (r > extra) | (r < -extra)) & (x != NULL)
            store(d, i, NULL if x == NULL else r)
    elif op == FADD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) + float_of(y)))
    elif op == FSUB:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) - float_of(y)))
    elif op == FMUL:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else word_of(float_of(x) * float_of(y)))
    elif op == FDIV:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            divisor = float_of(y)
            null = (x == NULL) | (y == NULL) | (divisor == 0.0)
            store(d, i, NULL if null else word_of(float_of(x) / divisor))
    elif op == FFLOORDIV or op == FMOD:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            if (x == NULL) | (y == NULL) | (y == 0) | (y == -1):  # 0 and -1 are the words of 0.0 and -0.0
                store(d, i, NULL)
            else:
                left, right = float_of(x), float_of(y)
                rest = np.fmod(left, right)
                down = (left - rest) / right
                if rest != 0.0:
                    if (right < 0.0) != (rest < 0.0):
                        rest += right
                        down -= 1.0
                else:
                    rest = math.copysign(0.0, right)
                if op == FMOD:
                    store(d, i, word_of(rest))
                else:
                    near = np.floor(down)
                    near = near + 1.0 if down - near > 0.5 else near
                    store(d, i, word_of(near if down != 0.0 else math.copysign(0.0, left / right)))
    elif op == FABS:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else (x if x >= 0 else x ^ -1))
    elif op == FLOAT_KEY:
        for i in range(n):
            x = load(a, i)
            store(d, i, 0 if x == -1 else x)
    else:  # COMPARE_INT_FLOAT
        for i in range(n):
            x, y = load(a, i), load(b, i)
            if (x == NULL) | (y == NULL):
                store(d, i, NULL)
            else:
                value = float_of(y)
                if value != value or value >= 9223372036854775808.0:  # NaN is greater than every number
                    store(d, i, -1)
                elif value < -9223372036854775808.0:
                    store(d, i, 1)
                else:
                    below = np.floor(value)
                    whole = int(below)
                    order = (1 if x > whole else 0) - (1 if x < whole else 0)
                    store(d, i, -1 if order == 0 and value > below else order)
    return bad


@inner
def logic_step(op, n, d, a, b, c):
    """Comparisons, three-valued logic, choices."""
    if op == EQ:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x == y else 0))
    elif op == NE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x != y else 0))
    elif op == LT:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x < y else 0))
    elif op == LE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, NULL if (x == NULL) | (y == NULL) else (1 if x <= y else 0))
    elif op == SCALE_SATURATED:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            over = multiply_overflows(x, y) != 0
            limit = GREATEST_WORD if x > 0 else -GREATEST_WORD
            store(d, i, NULL if x == NULL else (limit if over else x * y))
    elif op == AND:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, 0 if (x == 0) | (y == 0) else (1 if (x == 1) & (y == 1) else NULL))
    elif op == OR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, 1 if (x == 1) | (y == 1) else (0 if (x == 0) & (y == 0) else NULL))
    elif op == NOT:
        for i in range(n):
            x = load(a, i)
            store(d, i, NULL if x == NULL else 1 - x)
    elif op == IS_NULL:
        for i in range(n):
            store(d, i, 1 if load(a, i) == NULL else 0)
    elif op == NOT_TRUE:
        for i in range(n):
            store(d, i, 0 if load(a, i) == 1 else 1)
    elif op == SELECT:
        for i in range(n):
            x, y, z = load(a, i), load(b, i), load(c, i)
            store(d, i, y if x == 1 else z)
    elif op == COALESCE:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            store(d, i, y if x == NULL else x)
    else:  # COPY
        for i in range(n):
            store(d, i, load(a, i))


@inner
def bit_step(op, n, d, a, b):
    """Bitwise steps and the hash."""
    bad = False
    if op == HASH:
        for i in range(n):
            # the finaliser of splitmix64 over the state plus a multiple of the golden ratio: an odd constant
            # for the word, so that the order of the columns counts
            x = load(a, i) * -7046029254386353131 + load(b, i)
            x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
            x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
            x = x ^ ((x >> 31) & 0x1FFFFFFFF)
            store(d, i, 0 if x == NULL else x)
    elif op == BIT_AND or op == BIT_OR or op == BIT_XOR:
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            r = (x & y) if op == BIT_AND else ((x | y) if op == BIT_OR else x ^ y)
            bad |= (r == NULL) & (not null)
            store(d, i, NULL if null else r)
    else:  # SHIFT_LEFT, SHIFT_RIGHT
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            by = min(max(y, 0), 63)
            r = (x << by) if op == SHIFT_LEFT else (x >> by)
            lost = (op == SHIFT_LEFT) & (((r >> by) != x) | (r == NULL) | ((y > 63) & (x != 0)))
            bad |= ((y < 0) | lost) & (not null)
            store(d, i, NULL if null else r)
    return bad


@inner
def date_step(op, n, d, a, b, extra):
    """Steps on day numbers."""
    bad = False
    if op == DATE_FIELD:
        for i in range(n):
            x = load(a, i)
            year, month, day = civil(x)
            r = year
            if extra == MONTH:
                r = month
            elif extra == DAY:
                r = day
            elif extra == QUARTER:
                r = (month + 2) // 3
            store(d, i, NULL if x == NULL else r)
    elif op == TRUNCATE_DATE:
        for i in range(n):
            x = load(a, i)
            year, month, day = civil(x)
            r = x - day + 1
            if extra == YEAR:
                r = days_of_civil(year, 1, 1)
            elif extra == QUARTER:
                r = days_of_civil(year, (month + 2) // 3 * 3 - 2, 1)
            elif extra == WEEK:
                since_monday = x + 3
                r = x - (since_monday - since_monday // 7 * 7)
            store(d, i, NULL if x == NULL else r)
    else:  # ADD_MONTHS
        for i in range(n):
            x, y = load(a, i), load(b, i)
            null = (x == NULL) | (y == NULL)
            year, month, day = civil(x)
            total = year * 12 + month - 1 + min(max(y, -MAX_MONTHS), MAX_MONTHS)
            first = days_of_civil(total // 12, total - total // 12 * 12 + 1, 1)
            total += 1
            after = days_of_civil(total // 12, total - total // 12 * 12 + 1, 1)
            r = min(first + day, after) - 1
            bad |= ((y > MAX_MONTHS) | (y < -MAX_MONTHS) | (r > extra) | (r < -extra)) & (not null)
            store(d, i, NULL if null else r)
    return bad


@inner
def check_step(n, d, a, b):
    """CHECK_PARSED."""
    bad = False
    for i in range(n):
        x, y = load(a, i), load(b, i)
        bad |= (x == NULL) & (y != NULL)
        store(d, i, x)
    return bad


@inner
def step(op, n, d, a, b, c, extra):
    """Run one step over n rows; whether some row failed. The memo steps are not here: they can miss."""
    if op <= GREATEST:
        return integer_step(op, n, d, a, b, extra)
    if op <= FLOAT_KEY or op == COMPARE_INT_FLOAT:
        return float_step(op, n, d, a, b, extra)
    if op <= COPY:
        logic_step(op, n, d, a, b, c)
        return False
    if op <= HASH:
        return bit_step(op, n, d, a, b)
    if op <= ADD_MONTHS:
        return date_step(op, n, d, a, b, extra)
    return check_step(n, d, a, b)
