"""Random sequences of primitives keep the meaning of a program, and every primitive is drawn. `nox -s fuzz
-- --schedules` runs more of them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from gossamer_ir.script import parse_module
from gossamer_lower import lower_iterations
from gossamer_schedule.primitives.loops.parallel import parallel
from gossamer_schedule.primitives.unsafe.unsafe_parallel import unsafe_parallel
from gossamer_schedule.trace.primitive_table import PRIMITIVES
from gossamer_testkit import script_names
from gossamer_testkit.examples import ROW_SUM, SCALE, SPMM_COORDINATE
from tests.fuzzing.checks.disagreements import verdict_of
from tests.fuzzing.commands import step_sequences
from tests.fuzzing.commands.step_sequences import Sequences, judge
from tests.fuzzing.execution.races import Race, require_no_race
from tests.fuzzing.loop_nests.nests import draw_nest
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.handwritten import draw_written, parsed, usable
from tests.fuzzing.schedules.argument_generators import GENERATORS, NOT_DRAWN, Scene
from tests.fuzzing.schedules.argument_generators.from_signature import generator_from_signature
from tests.fuzzing.schedules.draw_schedule import REFUSED_SCHEDULES
from tests.fuzzing.schedules.sequences import Sequence

pytestmark = pytest.mark.unserialized


def test_each_primitive_has_an_argument_generator():
    safe = {name for name in PRIMITIVES if not name.startswith("unsafe_")}
    assert GENERATORS.keys() == safe - NOT_DRAWN.keys()


def test_a_primitive_without_a_generator_of_its_own_is_drawn_by_its_signature():
    generator = generator_from_signature("cache_read")
    assert generator is not None
    drawn = generator(Scene(Random(0), SCALE))
    assert drawn == {"block": "scale", "buffer": drawn["buffer"], "scope": drawn["scope"]}
    assert generator_from_signature("compute_inline")(Scene(Random(0), SPMM_COORDINATE)) is None
    assert generator_from_signature("split") is None, "nothing says which factors"


def test_sequences_change_no_meaning():
    tally = Sequences()
    for number in range(25):
        judge(number, tally, seed="sequences", native=0.2)
    assert tally.failures == []
    assert tally.steps >= step_sequences.ENOUGH_STEPS
    assert len(tally.accepted) > 20
    assert tally.native > 1
    assert tally.refused.total() < 8


def test_versions_of_loops_keep_the_inits_that_can_be_lowered():
    """A version for one iteration once left inits that no pass could place."""
    weights = dict.fromkeys(("add_unit_loop", "loop_version", "fuse", "split"), 60)
    drawn = Counter()
    for number in range(16):
        rng = Random(f"versions/{number}")
        program = (draw_nest if number % 2 else draw_program)(rng)
        sequence = Sequence(rng, weights=weights)
        verdict = verdict_of(program, schedule=sequence)
        assert verdict.disagreement is None
        assert verdict.refusal in (None, *REFUSED_SCHEDULES)
        drawn += Counter(step.op for step in sequence.steps)
    assert all(drawn[op] > 5 for op in weights)


def test_sequences_go_on_around_conditions():
    for number in range(12):
        rng = Random(f"nests/{number}")
        program = draw_nest(rng)
        assert verdict_of(program, schedule=Sequence(rng)).disagreement is None


def test_scripts_of_every_stage_are_drawn():
    names = {name for name in script_names() if not name.endswith("_paper")}
    assert names - set(usable()) == {
        "csr_spmm_by_blocks",
        "irregular_batched_matmul",
        "ragged_attention",
    }
    assert {parsed(name).stage for name in usable()} == {"coordinate", "position", "loop"}
    name, program = draw_written(Random(0))
    assert program.module == parsed(name)
    assert program.expected


ROWS = {
    "indptr": np.array([0, 2, 2, 5]), "a": np.ones(5, np.float32), "y": np.zeros(3, np.float32),
    "m": 3, "nnz": 5,
}  # fmt: skip


def test_races_are_seen():
    require_no_race(parallel(ROW_SUM, "i").module, ROWS)
    with pytest.raises(Race, match=r"iterations 0 and 1 of loop 'j' touch Y\[0\]"):
        require_no_race(unsafe_parallel(ROW_SUM, "j").module, ROWS)


def test_deeply_nested_loads_are_watched_in_linear_time():
    nested = "i"
    for _ in range(40):
        nested = f"X[{nested}]"
    module = parse_module(f"""
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "int64")
    Y = T.match_buffer(y, (n,), "int64")
    for i in T.parallel(n):
        Y[{nested}] = i
""")
    arrays = {"y": np.zeros(4, np.int64), "n": 4}
    require_no_race(module, {**arrays, "x": np.array([1, 2, 3, 0])})
    with pytest.raises(Race, match="iterations 0 and 1 of loop 'i' touch Y"):
        require_no_race(module, {**arrays, "x": np.zeros(4, np.int64)})


COLUMN_SUM = """
@T.prim_func
def f(
    indptr: T.handle, indices: T.handle, y: T.handle, m: T.int64, n: T.int64, nnz: T.int64
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    N = T.sp.dense_fixed(n)
    Y = T.sp.match_buffer(y, (N,), "int32")
    with T.sp.iteration([I, J], "SS", "total") as [i, j]:
        with T.init():
            Y[j] = 0
        Y[j] = Y[j] + 1
"""


def test_an_init_before_the_rows_races_with_none_of_them():
    arrays = {
        "indptr": np.int32([0, 2, 4]),
        "indices": np.int32([0, 1, 1, 2]),
        "y": np.zeros(3, np.int32),
    }
    module = parallel(lower_iterations(parse_module(COLUMN_SUM)), "j").module
    require_no_race(module, {**arrays, "m": 2, "n": 3, "nnz": 4})
    assert arrays["y"].tolist() == [1, 2, 1]
