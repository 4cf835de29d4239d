"""What the tests of all folders share."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Let the garbage collector skip modules and tests, which live until the process ends."""
    gc.freeze()
