"""`python -m benchmarks check-model`: present choices, rated by the times of a stored run."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from benchmarks import __main__, matrices, model_check, run_files
from benchmarks.parts.choice import ChoiceTime
from tests.benchmarks.benchmark_cases import run_of

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

BLOCKS = "bsr (block_rows=4, block_columns=4)"
STORED = ChoiceTime(
    "cora",
    "spmm",
    32,
    "float32",
    1,
    "csr",
    {"csr": 1.0},
    {"csr": 3.0, BLOCKS: 1.0, "hyb (c=1)": 9.0},
)
"""A case of a matrix of whole blocks, in which CSR was chosen, and blocks were three times as fast."""
TARGET = "generic-cpu:gathers=fast,l2=2097152,l3=16777216,vector_bits=512,cores=2"
"""A machine on which the blocks of `STORED` are chosen, whatever this machine is: smaller vectors want
smaller blocks."""


MISSES = {
    "intel-xeon-family-6-model-207-choice": (
        "generic-cpu:gathers=fast,l2=2097152,l3=16777216,vector_bits=512,cores=2",
        1,
        10,
    ),
    "amd-epyc-family-25-model-17-choice": (
        "generic-cpu:gathers=moderate,l2=1048576,l3=33554432,vector_bits=512,cores=2",
        2,
        1,
    ),
    "amd-epyc-family-25-model-1": (
        "generic-cpu:gathers=moderate,l2=524288,l3=33554432,vector_bits=256,cores=2",
        10,
        0,
    ),
}
"""The targets of the stored runs, the cases of each in which the present choice may miss a goal, and those in
which it was not measured: groups of several rows and diagonals in slices, which the first two runs do not
have."""


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """The matrix of `STORED` in a folder of data sets."""
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    nodes = sparse.random_array((40, 40), density=0.3, rng=np.random.default_rng(0))
    sparse.save_npz(tmp_path / "cora.npz", sparse.kron(nodes, np.ones((4, 4)), format="csr"))
    matrices.load_matrix.cache_clear()
    model_check.properties_of_named.cache_clear()
    yield
    matrices.load_matrix.cache_clear()
    model_check.properties_of_named.cache_clear()


@pytest.mark.parametrize("name", MISSES)
def test_present_choices_meet_the_goals_in_the_stored_runs(name):
    target, permitted, unmeasured = MISSES[name]
    run = run_files.load_run(run_files.RESULTS / f"{name}.json")
    stored = run.results_of(ChoiceTime)
    try:
        times = model_check.with_present_choices(stored, target)
    except matrices.MissingMatrixError as error:
        pytest.skip(str(error))
    missed = [(one.matrix, *one.case) for one in times if not one.is_met]
    assert len(times) == len(stored) - unmeasured
    assert len(missed) <= permitted, missed


@pytest.mark.usefixtures("blocks")
def test_stored_times_rate_what_is_chosen_now():
    (stored,) = model_check.with_present_choices([STORED], TARGET)
    assert (stored.chosen, stored.times_ms) == (BLOCKS, STORED.times_ms)
    assert stored.is_met
    assert not STORED.is_met
    assert stored.expected_cycles["csr"] > stored.expected_cycles[BLOCKS] > 0


@pytest.mark.usefixtures("blocks")
def test_a_choice_that_was_not_measured_is_left_out():
    unmeasured = replace(STORED, times_ms={"csr": 3.0})
    assert model_check.with_present_choices([unmeasured], TARGET) == []


def test_an_error_of_the_model_is_a_ratio_of_speedups():
    expected = {"csr": 6.0, BLOCKS: 4.0}
    times = [
        replace(
            STORED, times_ms={"csr": ms, BLOCKS: 1.0, "hyb (c=1)": 1.0}, expected_cycles=expected
        )
        for ms in (1.5, 3.0, 3.0)
    ]
    (row,) = model_check.model_errors_sheet(times).rows
    assert row == (BLOCKS, "spmm", "32", "3", "1.20", "2.00", "2.00")


@pytest.mark.usefixtures("blocks")
def test_the_command_fails_if_a_choice_misses(tmp_path, capsys):
    slow_blocks = replace(STORED, times_ms={"csr": 1.0, BLOCKS: 2.0})
    for stored, status, verdict in ((STORED, 0, "met"), (slow_blocks, 1, "MISSED by 1 of 1")):
        run = replace(run_of(), results=(stored,))
        path = run_files.save_run(run, tmp_path)
        assert __main__.main(["check-model", str(path), "--target", TARGET]) == status
        assert verdict in capsys.readouterr().out


@pytest.mark.usefixtures("blocks")
def test_a_run_without_times_of_present_choices_rates_nothing(tmp_path, capsys):
    run = replace(run_of(), results=(replace(STORED, times_ms={"csr": 3.0}),))
    path = run_files.save_run(run, tmp_path)
    assert __main__.main(["check-model", str(path), "--target", TARGET]) == 0
    assert "no time of what is chosen now in 1" in capsys.readouterr().out
