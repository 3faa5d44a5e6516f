"""The steps of an expression program: their numbers, and what each computes. Each is one loop over a block of words.

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
    MAP1 MAP2 MAP3 MEMBER   through memo `extra`: see `tektite.kernels.expr.run`
    LIKE                    the text of id a, by pattern `extra`: see `tektite.kernels.text.like`
    TEXT_WORD               some bytes of the text of id a, as a number: which ones says table `extra`
"""

from __future__ import annotations

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
