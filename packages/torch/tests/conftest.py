"""Skips all tests of this folder where torch is not installed, and what they share."""

from __future__ import annotations

import importlib.util

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["*"]

if HAS_TORCH:
    import torch


def pytest_ignore_collect():
    return None if HAS_TORCH else True


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def arrays():
    """A pattern of 3 rows and 4 columns with an empty row and unsorted columns."""
    return torch.tensor([0, 2, 2, 5]), torch.tensor([1, 0, 3, 2, 1])
