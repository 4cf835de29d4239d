"""Fixtures shared by the tests of the public API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import gossamer.cli
from gossamer_backend.call.threads import reset_num_threads


class Outcome(NamedTuple):
    """The exit code and the output of a command."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests, and the workers of pytest-xdist, share a temporary cache; none uses the user's cache."""
    base = tmp_path_factory.getbasetemp()
    base = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels"
    base.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(base))


@pytest.fixture
def command(capsys: Any) -> Iterator[Callable[..., Outcome]]:
    """Runs a command line in this process."""

    def run(*arguments: str) -> Outcome:
        status = gossamer.cli.main(arguments)
        output = capsys.readouterr()
        return Outcome(status, output.out, output.err)

    yield run
    reset_num_threads()


@pytest.fixture
def matrix_file(tmp_path: Path) -> str:
    """A 30 by 40 matrix as an .npz file."""
    matrix = sparse.random_array((30, 40), density=0.2, rng=np.random.default_rng(5), format="csr")
    sparse.save_npz(tmp_path / "a.npz", matrix)
    return str(tmp_path / "a.npz")
