"""Skips all tests of this folder where torch is not installed, and what they share."""

from __future__ import annotations

import importlib.util
import shutil

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


@pytest.fixture(scope="session")
def installed_gpu():
    """A GPU that the interpreter of PTX runs, for all tests: kernels that the process keeps are loaded
    there."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc, which compiles a library that stands in for that of a driver")
    from fake_drivers import installed_drivers

    with pytest.MonkeyPatch.context() as patch, installed_drivers(patch, packages=()) as gpu:
        yield gpu


@pytest.fixture
def gpu(installed_gpu, monkeypatch):
    """The GPU, for tensors on it."""
    from gpu_tensors import tensors_on

    with tensors_on(installed_gpu, monkeypatch):
        yield installed_gpu
