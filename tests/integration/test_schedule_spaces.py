"""All points of the spaces of schedules that rules return compute what SciPy does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators import operator_named
from gossamer_ir.interchange.records import Stats

FIXED = "generic-cpu:vector_bits=512,l2=1048576,l3=33554432,gathers=slow,cores=2"
NARROW = "generic-cpu:vector_bits=128,l2=1048576,l3=33554432,gathers=slow,cores=2"
SCALABLE = ("llvm-sve:cores=2", "llvm-rvv:cores=2")
MANY_ROWS = Stats(rows=1 << 16, columns=1 << 16, nnz=80 << 16, longest_row=500, empty_rows=0)
SHORT_ROWS = Stats(rows=1 << 9, columns=1 << 9, nnz=3 << 9, longest_row=9, empty_rows=1)

ROWS, COLUMNS = 53, 47


@pytest.fixture(scope="module")
def matrix():
    """A matrix of integers with empty rows at both ends, and one dense row."""
    random = np.random.default_rng(0)
    dense = random.integers(-3, 4, (ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.2)
    dense[[0, -1]], dense[7] = 0, random.integers(1, 4, COLUMNS)
    return sparse.csr_array(dense.astype(np.float32))


def integers(*shape):
    return np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)


def kernels_of(name, *, target, stats, features):
    """Yield each point of the space of an operator, and its kernel."""
    sizes = {} if features is None else {"feat_size": features}
    space = gs.schedule_space(name, target=target, stats=stats, specialize=sizes)
    assert space.prior == gs.explain(name, target=target, stats=stats, specialize=sizes)
    assert len(space.reports) == len({tuple(report.point.items()) for report in space.reports})
    assert len(space.reports) == len({repr(report.schedule) for report in space.reports})
    for report in space.reports:
        assert space.at(report.point) == report
        script = operator_named(name).program.script
        options = {"target": target, "specialize": sizes, "schedule": report.schedule}
        yield report.point, gs.compile(script, **options)


CHOICES = [
    (FIXED, None, None, {"tile_vectors"}),
    (FIXED, 16, SHORT_ROWS, {"form", "sums", "tile_vectors", "tile_loop", "prefetch_distance"}),
    (FIXED, 40, MANY_ROWS, {"tile_vectors", "tile_loop", "prefetch_distance"}),
    (NARROW, 64, MANY_ROWS, {"form", "tile_vectors", "tile_loop", "prefetch_distance"}),
    (NARROW, 70, None, {"tile_vectors", "tile_loop", "prefetch_distance"}),
    *((target, None, None, {"tile_vectors"}) for target in SCALABLE),
    *((target, 24, MANY_ROWS, {"tile_vectors", "prefetch_distance"}) for target in SCALABLE),
    *(
        (target, 64, SHORT_ROWS, {"form", "tile_vectors", "prefetch_distance"})
        for target in SCALABLE
    ),
]


@pytest.mark.parametrize(("target", "features", "stats", "names"), CHOICES)
def test_all_schedules_of_spmm_compute_the_product(target, features, stats, names, matrix):
    dense = integers(COLUMNS, features or 37)
    arrays = {"a": matrix.data, "indptr": matrix.indptr, "indices": matrix.indices, "b": dense}
    met = set()
    for point, kernel in kernels_of("spmm", target=target, stats=stats, features=features):
        met.update(point)
        result = np.full((ROWS, dense.shape[1]), np.nan, np.float32)
        kernel(**arrays, c=result)
        np.testing.assert_array_equal(result, matrix @ dense, err_msg=str(point))
    assert met == {f"csrmm.{name}" for name in names}


@pytest.mark.parametrize("target", [FIXED, SCALABLE[0]])
def test_all_schedules_of_sddmm_compute_the_products(target, matrix):
    left, right = integers(ROWS, 48), integers(COLUMNS, 48)
    rows, columns = matrix.nonzero()
    expected = np.einsum("ij,ij->i", left[rows], right[columns])
    for point, kernel in kernels_of("sddmm", target=target, stats=MANY_ROWS, features=48):
        result = np.full(matrix.nnz, np.nan, np.float32)
        by_name = {"out": result, "x": left, "y": right}
        by_name |= {"indptr": matrix.indptr, "indices": matrix.indices}
        names = kernel.signature.order
        kernel(**{name: by_name[name] for name in names if name in by_name})
        np.testing.assert_array_equal(result, expected, err_msg=str(point))
