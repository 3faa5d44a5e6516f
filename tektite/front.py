"""Engine as users hold it: the engine below, and the languages that can be spoken to it, each loaded at its first word."""

from __future__ import annotations

from tektite import engine


class Engine(engine.Engine):
    __doc__ = engine.Engine.__doc__
