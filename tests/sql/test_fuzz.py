"""No text gives anything but a Tektite error: random sentences and mutations go the whole way.

Each is run as it is; a query is also installed as a view, read and dropped. TEKTITE_FUZZ sets how many statements there are
(600), TEKTITE_SEED where the seeds start. A failure shows the statement.
"""

from __future__ import annotations

import random
import traceback

import pytest

import tektite as tk
from tests.support.nightly import SEED, size
from tests.support.sql.fuzz import Mutations, Sentences

STATEMENTS = size("TEKTITE_FUZZ", 600)
TOGETHER = 100
"""Statements on one engine."""


@pytest.mark.parametrize("seed", range(SEED, SEED + -(-STATEMENTS // TOGETHER)))
def test_any_text_runs_or_gives_a_tektite_error(seed: int) -> None:
    chance = random.Random(seed)
    sentences = Sentences(chance) if seed % 2 else Mutations(chance)
    found = []
    with tk.Engine() as engine:
        for statement in sentences.setup:
            engine.sql(statement)
        for _ in range(TOGETHER):
            statement = sentences.statement()
            fault = fault_of(engine, statement)
            if fault is not None:
                found.append(f"{statement}\n{fault}")
    assert not found, f"{len(found)} of {TOGETHER} statements of seed {seed}:\n\n" + "\n\n".join(found[:5])


def fault_of(engine: tk.Engine, statement: str) -> str | None:
    """What comes out of a statement that is no Tektite error: the last lines of its traceback."""
    try:
        engine.sql(statement)
    except tk.TektiteError:
        pass
    except Exception:
        return "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
    if not statement.lstrip().upper().startswith(("SELECT", "WITH", "VALUES", "(")):
        return None
    try:
        engine.sql(f"CREATE MATERIALIZED VIEW fuzzed AS {statement}")
    except tk.TektiteError:
        return None
    except Exception:
        return "as a view: " + "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
    try:
        engine.view("fuzzed").rows()
    except tk.TektiteError:
        pass
    except Exception:
        return "read: " + "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
    finally:
        engine.sql("DROP MATERIALIZED VIEW fuzzed")
    return None
