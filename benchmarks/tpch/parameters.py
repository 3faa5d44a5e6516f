"""Substitution parameters: the 22 queries with other constants, drawn from the ranges of the standard (2.4.1.3 to 2.4.22.3).

A parameter is named by the text that the validation query has in its place. Q18's quantity comes from a wider range than the
standard's, in which small scale factors have no answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from benchmarks.tpch.queries import Query, query

Draw = Callable[[random.Random], str]

REGIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
NATIONS = tuple(nation for nations in REGIONS.values() for nation in nations)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
SIZES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
COLORS = ("almond", "azure", "blue", "chocolate", "cyan", "forest", "green", "honeydew", "ivory", "khaki", "lemon", "maroon",
          "navy", "olive", "peach", "red", "salmon", "tan", "violet", "white")  # fmt: skip
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
BOXES = ("SM", "LG", "MED", "JUMBO", "WRAP")
CONTAINERS = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")


@dataclass(frozen=True)
class Parameter:
    """What the validation query has in place of a parameter, how another value is drawn, and where it stands, if the text alone
    does not say that: `{}` is the value.
    """

    text: str
    draw: Draw
    where: tuple[str, ...] = ("{}",)


def texts(*values: str) -> Draw:
    """One of some texts."""
    return lambda chance: f"'{chance.choice(values)}'"


def numbers(low: int, high: int) -> Draw:
    """A number of a range, both ends included."""
    return lambda chance: str(chance.randint(low, high))


def firsts(low: int, high: int, months: int = 12) -> Draw:
    """The first day of a year, quarter or month, from January of one year to the end of another."""
    return lambda chance: f"date '{chance.randint(low, high)}-{chance.randrange(0, 12, months) + 1:02d}-01'"


def made(form: str, *parts: tuple[str, ...]) -> Draw:
    """A text that is put together of others."""
    return lambda chance: f"'{form.format(*[chance.choice(part) for part in parts])}'"


BRANDS = tuple(f"Brand#{one}{two}" for one in range(1, 6) for two in range(1, 6))
QUANTITIES = ("l_quantity >= {} and l_quantity <= {} + 10",)

PARAMETERS: dict[int, tuple[Parameter, ...]] = {
    1: (Parameter("date '1998-12-01' - interval '90' day (3)", lambda c: f"date '1998-09-{c.randint(1, 30):02d}'"),),
    2: (
        Parameter("15", numbers(1, 50), ("p_size = {}",)),
        Parameter("'%BRASS'", made("%{}", METALS)),
        Parameter("'EUROPE'", texts(*REGIONS)),
    ),
    3: (
        Parameter("'BUILDING'", texts(*SEGMENTS)),
        Parameter("date '1995-03-15'", lambda c: f"date '1995-03-{c.randint(1, 31):02d}'"),
    ),
    4: (Parameter("date '1993-07-01'", firsts(1993, 1997, 1)),),
    5: (Parameter("'ASIA'", texts(*REGIONS)), Parameter("date '1994-01-01'", firsts(1993, 1997))),
    6: (
        Parameter("date '1994-01-01'", firsts(1993, 1997)),
        Parameter("0.06", lambda c: f"0.0{c.randint(2, 9)}"),
        Parameter("24", numbers(24, 25), ("l_quantity < {}",)),
    ),
    7: (Parameter("'FRANCE'", texts(*NATIONS[::2])), Parameter("'GERMANY'", texts(*NATIONS[1::2]))),
    8: (
        Parameter("'BRAZIL'", texts(*NATIONS)),
        Parameter("'AMERICA'", texts(*REGIONS)),
        Parameter("'ECONOMY ANODIZED STEEL'", made("{} {} {}", SIZES, FINISHES, METALS)),
    ),
    9: (Parameter("'%green%'", made("%{}%", COLORS)),),
    10: (Parameter("date '1993-10-01'", firsts(1993, 1994, 1)),),
    11: (Parameter("'GERMANY'", texts(*NATIONS)),),
    12: (
        Parameter("'MAIL'", texts(*MODES[::2])),
        Parameter("'SHIP'", texts(*MODES[1::2])),
        Parameter("date '1994-01-01'", firsts(1993, 1997)),
    ),
    13: (Parameter("'%special%requests%'", made("%{}%{}%", ("special", "pending", "unusual", "express"),
                                                ("packages", "requests", "accounts", "deposits"))),),
    14: (Parameter("date '1995-09-01'", firsts(1993, 1997, 1)),),
    15: (Parameter("date '1996-01-01'", firsts(1993, 1997, 1)),),
    16: (
        Parameter("'Brand#45'", texts(*BRANDS)),
        Parameter("'MEDIUM POLISHED%'", made("{} {}%", SIZES, FINISHES)),
    ),
    17: (Parameter("'Brand#23'", texts(*BRANDS)), Parameter("'MED BOX'", made("{} {}", BOXES, CONTAINERS))),
    18: (Parameter("300", numbers(200, 315)),),
    19: (
        Parameter("'Brand#12'", texts(*BRANDS)),
        Parameter("'Brand#23'", texts(*BRANDS)),
        Parameter("'Brand#34'", texts(*BRANDS)),
        Parameter("1", numbers(1, 10), QUANTITIES),
        Parameter("10", numbers(10, 20), QUANTITIES),
        Parameter("20", numbers(20, 30), QUANTITIES),
    ),
    20: (
        Parameter("'forest%'", made("{}%", COLORS)),
        Parameter("date '1994-01-01'", firsts(1993, 1997)),
        Parameter("'CANADA'", texts(*NATIONS)),
    ),
    21: (Parameter("'SAUDI ARABIA'", texts(*NATIONS)),),
    22: (Parameter("'13'", texts(*map(str, range(10, 17)))), Parameter("'31'", texts(*map(str, range(30, 35))))),
}  # fmt: skip


def drawn(number: int, scale: float, seed: int) -> tuple[str, ...]:
    """Values for the parameters of a query: those of the validation query for the seed 0.

    >>> drawn(3, 1.0, 0), drawn(3, 1.0, 1) != drawn(3, 1.0, 2)
    (("'BUILDING'", "date '1995-03-15'"), True)
    """
    chance = random.Random(number * 10_007 + seed)
    return tuple(found.draw(chance) if seed else found.text for found in PARAMETERS[number])


@cache
def with_values(number: int, scale: float, values: tuple[str, ...]) -> Query:
    """A query with some values, written as SQL writes them, in place of its parameters.

    >>> "p_size = 7" in with_values(2, 1.0, ("7", "'%TIN'", "'ASIA'")).select
    True
    """
    found = query(number, scale)
    change = _changed(number, values)
    return replace(found, before=tuple(map(change, found.before)), select=change(found.select))


def _changed(number: int, values: tuple[str, ...]) -> Callable[[str], str]:
    places = {
        where.replace("{}", found.text): where.replace("{}", value)
        for found, value in zip(PARAMETERS[number], values, strict=True)
        for where in found.where
    }
    pattern = re.compile("|".join(re.escape(text) + r"(?!\d)" for text in sorted(places, key=len, reverse=True)))
    return lambda text: pattern.sub(lambda match: places[match.group()], text)
