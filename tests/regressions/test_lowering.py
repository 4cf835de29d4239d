"""Regression tests: programs that once had different meanings at different stages."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError, UnsupportedError
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.draw_schedule import by_rules

pytestmark = pytest.mark.no_error_examples

I32 = np.int32

CASES = {
    "an init inside does not depend on whether a fused axis has elements": (
        """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indices_j: T.handle, indices_k: T.handle,
         indptr_m: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1,), (indptr_j, indices_j))
    K = T.sp.compressed_fixed(J, (n2, 0), indices_k)
    M = T.sp.dense_varied(K, (n2,), indptr_m)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, J], "SR", "outer") as [i, j]:
        with T.sp.iteration([T.sp.fuse(K, M)], "RR", "inner") as [k, l]:
            with T.init():
                Y[i] = 0
            Y[i] = Y[i] + 1
""",
        {
            "y": np.array([-2, 5, 1], I32),
            "indptr_j": np.array([0, 1, 1, 3], I32), "indices_j": np.array([1, 0, 1], I32),
            "indices_k": np.zeros(0, I32), "indptr_m": np.zeros(1, I32),
            "n0": 3, "n1": 3, "n2": 3,
        },
    ),
    "a let that reads out of bounds stops the program even if it is not used": (
        """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        late: T.int32 = X[i + 1]
        with T.sp.iteration([I], "S", "inner") as [j]:
            with T.init():
                Y[j] = 2
            Y[j] = Y[j] + 1
""",
        {"x": np.arange(3, dtype=I32), "y": np.zeros(3, I32), "n0": 3},
    ),
    "copying the sign of a double to a float16 needs no library function": (
        """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    X = T.sp.match_buffer(x, (I,), "float16")
    Y = T.sp.match_buffer(y, (I,), "float16")
    with T.sp.iteration([I, J], "SR", "step") as [i, j]:
        Y[i] = Y[i] - T.tanh(T.if_then_else(X[i] < T.float16(1.0), 1.0, X[i]))
""",
        {
            "x": np.array([-2, 0, 40], np.float16), "y": np.array([1, 2, 3], np.float16),
            "n0": 3, "n1": 2,
        },
    ),
    "a prefetch looks up its element": (
        """
@T.prim_func
def main(x: T.handle, indptr_j: T.handle, indices_j: T.handle, indptr_k: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1,), (indptr_j, indices_j))
    K = T.sp.dense_varied(J, (n1,), indptr_k)
    X = T.sp.match_buffer(x, (I, J, K), "float32")
    with T.sp.iteration([I, J, K], "SSS", "step") as [i, j, k]:
        T.prefetch(X, i, j, k)
        T.prefetch(X, i, k, 1)
        X[i, j, k] = X[i, j, k] + 1.0
""",
        {
            "x": np.zeros(3, np.float32),
            "indptr_j": np.array([0, 1, 2], I32), "indices_j": np.array([3, 4], I32),
            "indptr_k": np.array([0, 1, 3], I32), "n0": 2, "n1": 5,
        },
    ),
    "a size that is read from an index array is known in a parallel loop": (
        """
@T.prim_func
def main(a: T.handle, y: T.handle, indptr_j: T.handle, indices_j: T.handle, indptr_k: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(1)
    J = T.sp.compressed_varied(I, (n0,), (indptr_j, indices_j))
    K = T.sp.dense_varied(J, (n1,), indptr_k)
    N = T.sp.dense_fixed(n0)
    A = T.sp.match_buffer(a, (I, J, K), "float32")
    Y = T.sp.match_buffer(y, (N,), "float32")
    with T.sp.iteration([I, J, K], "SSR", "step") as [i, j, k]:
        with T.init():
            Y[j] = 0.0
        Y[j] = Y[j] + A[i, j, k]
""",
        {
            "a": np.array([1, 2, 3, 4], np.float32), "y": np.full(3, 7, np.float32),
            "indptr_j": np.array([0, 2], I32), "indices_j": np.array([0, 2], I32),
            "indptr_k": np.array([0, 1, 4], I32), "n0": 3, "n1": 5,
        },
    ),
    "an init visits what has an attached fiber of one element nowhere": (
        """
@T.prim_func
def main(y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    L = T.sp.dense_fixed(n1)
    M = T.sp.dense_fixed(1, parent=L)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, T.sp.attach(M, I)], "SR", "step") as [i, m]:
        with T.init():
            Y[i] = 1
        Y[i] = Y[i] + 2
""",
        {"y": np.array([7, 8, 9, 10], I32), "n0": 4, "n1": 2},
    ),
    "default rules do not handle results with elements after the last one": (
        """
@T.prim_func
def main(a: T.handle, b: T.handle, y: T.handle, indptr_j: T.handle, indices_j: T.handle,
         indptr_k: T.handle, indices_k: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(1)
    J = T.sp.compressed_varied(I, (n0,), (indptr_j, indices_j))
    K = T.sp.compressed_varied(J, (n1,), (indptr_k, indices_k))
    L = T.sp.dense_fixed(n1)
    M = T.sp.dense_fixed(n1)
    N = T.sp.dense_fixed(n0)
    A = T.sp.match_buffer(a, (I, J, K), "float32")
    B = T.sp.match_buffer(b, (L, M), "float32")
    Y = T.sp.match_buffer(y, (N, M), "float32", extra_storage=1)
    with T.sp.iteration([I, J, K, M], "SSRS", "step") as [i, j, k, l]:
        with T.init():
            Y[j, l] = 0.0
        Y[j, l] = Y[j, l] + A[i, j, k] * B[k, l]
""",
        {
            "a": np.array([1, 2, 3], np.float32), "b": np.arange(4, dtype=np.float32),
            "y": np.full(7, 5, np.float32),
            "indptr_j": np.array([0, 2], I32), "indices_j": np.array([0, 2], I32),
            "indptr_k": np.array([0, 1, 3], I32), "indices_k": np.array([1, 0, 1], I32),
            "n0": 3, "n1": 2,
        },
    ),
    "an init visits what has its one slot filled anywhere": (
        """
@T.prim_func
def main(y: T.handle, indices_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_fixed(I, (n1, 1), indices_j)
    N = T.sp.dense_fixed(n1)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, N, J], "SRS", "step") as [i, n, j]:
        with T.init():
            Y[i] = 0
        Y[i] = Y[i] + 1
""",
        {"y": np.array([4, 5, 6], I32), "indices_j": np.array([2, 0, 2], I32), "n0": 3, "n1": 2},
    ),
    "a let above an iteration with an init may read what was written": (
        """
@T.prim_func
def main(x: T.handle, y: T.handle, z: T.handle, n: T.int64, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_fixed(m)
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    Z = T.sp.match_buffer(z, (I, J), "float32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        X[i] = X[i] + 1.0
        before: T.float32 = X[i]
        with T.sp.iteration([J], "R", "inner") as [j]:
            with T.init():
                Y[i] = 0.0
            Y[i] = Y[i] + before * Z[i, j]
""",
        {
            "x": np.array([1, 2, 3], np.float32), "y": np.full(3, 9, np.float32),
            "z": np.arange(6, dtype=np.float32), "n": 3, "m": 2,
        },
    ),
    "a value that is multiplied by zero is still read": (
        """
@T.prim_func
def main(x: T.handle, y: T.handle, z: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(3)
    X = T.sp.match_buffer(x, (I,), "int64")
    Y = T.sp.match_buffer(y, (I,), "int64")
    Z = T.sp.match_buffer(z, (I,), "int64")
    both = T.comm_reducer(lambda a, b, c, d: (a + c, b + d), (0, 0))
    with T.sp.iteration([I], "S", "step") as [i]:
        Y[i], Z[i] = both(Y[i], Z[i], 1, X[i * 2] * 0)
""",
        {"x": np.array([1, 4, 1]), "y": np.array([4, -4, 0]), "z": np.array([-1, -2, 1])},
    ),
    "a prefetch reads nothing to find an element below one that is outside": (
        """
@T.prim_func
def main(x: T.handle, indptr_j: T.handle, indices_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1,), (indptr_j, indices_j))
    X = T.sp.match_buffer(x, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "step") as [i, j]:
        T.prefetch(X, 3, j)
        T.prefetch(X, i - 2, j)
        X[i, j] = X[i, j] + 1.0
""",
        {
            "x": np.zeros(3, np.float32),
            "indptr_j": np.array([0, 3, 3, 3], I32), "indices_j": np.array([0, 1, 2], I32),
            "n0": 3, "n1": 3,
        },
    ),
    "a coordinate that is read where a search has found one may be none": (
        """
@T.prim_func
def main(y: T.handle, b: T.handle, at: T.handle, indptr_j: T.handle, n0: T.int64,
         n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    M = T.sp.dense_fixed(n2)
    B = T.sp.match_buffer(b, (I, M, J), "int32")
    AT = T.sp.match_buffer(at, (I,), "int64")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "step") as [i, j]:
        Y[i, j] = B[i, AT[i], j]
""",
        {
            "y": np.zeros(4, I32), "b": np.arange(8, dtype=I32), "at": np.array([2, 0, 1]),
            "indptr_j": np.array([0, 2, 3, 4], I32), "n0": 3, "n1": 4, "n2": 2,
        },
    ),
}  # fmt: skip
"""Scripts, each with its arguments."""


def test_an_axis_iterated_outside_of_its_parent_is_refused_with_its_name():
    """The parent is iterated too, but further inside: it does not select a fiber of the enclosing
    iteration."""
    module = parse_module("""
@T.prim_func
def main(y: T.handle, indptr_k: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(4, parent=I)
    K = T.sp.dense_varied(J, (n1,), indptr_k)
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([J], "R", "outer") as [j]:
        with T.sp.iteration([I, K], "SR", "inner") as [i, k]:
            Y[i] = Y[i] + 1.0
""")
    with pytest.raises(
        UnsupportedError, match="includes a child of axis 'I', but not 'I' itself"
    ) as error:
        lower_iterations(module)
    assert error.value.code == "lower.lower_iterations.missing_parent"


def test_a_cache_that_no_init_fills_holds_what_was_there():
    """The init initializes another buffer than the cached one."""
    module = parse_module("""
@T.prim_func
def main(x: T.handle, y: T.handle, z: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    Z = T.sp.match_buffer(z, (I,), "float32")
    with T.sp.iteration([I], "S", "step") as [i]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + X[i]
        Z[i] = Z[i] + X[i]
""")

    def schedule(module):
        builder = ScheduleBuilder(module)
        if module.stage == "position":
            builder.cache_write("step", buffer="Z", scope="global")
        return builder.module

    arrays = {name: np.arange(3, dtype=np.float32) + number for number, name in enumerate("xyz")}
    program = Program(module, arrays, {"n": 3})
    assert verdict_of(program, native=True, schedule=schedule) == Verdict()


ATTACHED = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indices_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1,), (indptr_j, indices_j))
    K = T.sp.dense_fixed(2, parent=J)
    M = T.sp.dense_fixed(n1)
    Y = T.sp.match_buffer(y, (M,), "int32")
    with T.sp.iteration([I, M, T.sp.attach(K, M)], "RSR", "step") as [i, m, k]:
        Y[m] = Y[m] + 1
"""


def test_an_attached_axis_stays_behind_what_its_parents_fiber_is_selected_by():
    builder = ScheduleBuilder(parse_module(ATTACHED))
    with pytest.raises(ScheduleError, match="'K' must come after axis 'I'"):
        builder.sparse_reorder("step", order=("m", "k", "i"))
    builder.sparse_reorder("step", order=("m", "i", "k"))


def test_beyond_the_end_of_a_split_loop_nothing_is_searched():
    module = parse_module(ATTACHED)
    arrays = {
        "y": np.zeros(2, I32),
        "indptr_j": np.array([0, 1, 1, 3], I32),
        "indices_j": np.array([1, 0, 1], I32),
    }

    def schedule(module):
        builder = ScheduleBuilder(module)
        if module.stage == "position":
            builder.split("i", factors=(None, 4))
        return builder.module

    program = Program(module, arrays, {"n0": 3, "n1": 2})
    assert verdict_of(program, native=True, schedule=schedule) == Verdict()


def test_a_guard_that_names_an_allocated_buffer_has_it_before():
    """The cache is guarded under the name of the buffer that it replaces."""
    module = lower_iterations(
        parse_module("""
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indices_j: T.handle, indptr_k: T.handle,
         indices_k: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1,), (indptr_j, indices_j))
    K = T.sp.compressed_varied(I, (n1,), (indptr_k, indices_k))
    X = T.sp.alloc_buffer((I, K), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "first") as [i, j]:
        X[i, j] = 2.0
    with T.sp.iteration([I, J], "SS", "last") as [l, m]:
        Y[l, m] = X[l, m]
""")
    )
    builder = ScheduleBuilder(module)
    builder.cache_write("first", buffer="X", scope="global")
    flat = lower_to_flat(lower_buffers(builder.module))
    assert not diagnostics(flat)


@pytest.mark.parametrize("is_scheduled", [False, True], ids=["as written", "by default rules"])
@pytest.mark.parametrize("name", CASES)
def test_all_stages_and_the_machine_code_agree(name, is_scheduled):
    text, values = CASES[name]
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    sizes = {key: value for key, value in values.items() if key not in arrays}
    program = Program(parse_module(text), arrays, sizes)
    schedule = {"schedule": by_rules(program.module)} if is_scheduled else {}
    assert verdict_of(program, native=True, **schedule) == Verdict()
