"""Fixtures and options that the tests of all folders share."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 10_000
"""The number of new objects after which they are collected; by default it is 700. Tests make and drop so many
that the default takes two percent of their time."""

gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector skip modules and tests, which live until the process ends."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()
