"""Steps on day numbers, and the calendar.

Contracts are in steps.py: what a step computes, and where it fails. `d` is the address of the results, `a` and `b` are those of
the operands, each of n words.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.expr.steps import DATE_FIELD, DAY, MONTH, QUARTER, TRUNCATE_DATE, WEEK, YEAR
from tektite.kernels.layout.memory import load, store
from tektite.values.words import NULL

MAX_MONTHS = 10**11  # far beyond every date, far from overflowing


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
