"""Fixtures and options that the tests of all folders share."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 50_000
"""The number of new objects after which they are collected; by default it is 700. Tests make and drop so many
that the default takes three percent of their time. A kernel leaves 10,000 of them, so that with as many, each
build ended with a collection."""

gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector skip modules and tests, which live until the process ends."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()
