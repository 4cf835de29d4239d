"""`gossamer.schedule_space`: the schedules between which rules choose, and where the choice is shown."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.cli import main
from gossamer.operators import operator_named
from gossamer_ir.errors import ArgumentError

TARGET = "generic-cpu:vector_bits=256,l2=1048576,l3=33554432,cores=2"
SIZES = {"feat_size": 48}


def test_a_kernel_is_compiled_for_each_point():
    matrix = sparse.random_array((20, 30), density=0.3, format="csr", rng=1, dtype=np.float32)
    matrix.data[:] = np.arange(matrix.nnz) % 7
    dense, results = np.arange(30 * 48, dtype=np.float32).reshape(30, 48) % 5, []
    space = gs.schedule_space("spmm", target=TARGET, specialize=SIZES)
    for report in space.reports:
        script = operator_named("spmm").program.script
        kernel = gs.compile(script, target=TARGET, specialize=SIZES, schedule=report.schedule)
        results.append(np.empty((20, 48), np.float32))
        kernel(a=matrix.data, b=dense, c=results[-1], indptr=matrix.indptr, indices=matrix.indices)
    assert len(results) > 5
    for result in results:
        np.testing.assert_array_equal(result, matrix @ dense)


def test_the_space_is_that_of_the_stats_of_the_matrix():
    stats = gs.from_scipy(
        sparse.diags_array(np.ones((41, 4096)), offsets=range(41), shape=(4096, 4096)).tocsr()
    ).stats
    space = gs.schedule_space("spmm", target=TARGET, stats=stats, specialize=SIZES)
    assert space.prior == gs.explain("spmm", target=TARGET, stats=stats, specialize=SIZES)
    assert space != gs.schedule_space("spmm", target=TARGET, specialize=SIZES)


def test_an_unknown_point_is_refused():
    with pytest.raises(ArgumentError, match=r"no point with \{'csrmm.tile_vectors': 1000\}"):
        gs.schedule_space("spmm", target=TARGET).at({"csrmm.tile_vectors": 1000})


def test_the_choices_are_printed(capsys):
    assert main(["show", "spmm", "--schedule", "--target", TARGET]) == 0
    assert re.search(r"csrmm.tile_vectors is \d+, and could be \d+\n", _lines(capsys))


def _lines(capsys):
    """The printed text, without the spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
