"""`schedule`: a builder of a schedule for a program in any form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.api.compile import ProgramSource, specialized_module
from gossamer.compilation.pipeline import stage_lowering
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import plugin_of, resolve_elsewhere
from gossamer_ir.interchange.records import Target
from gossamer_ir.verify import verify

if TYPE_CHECKING:
    from gossamer_schedule import ScheduleBuilder


def schedule(
    program: ProgramSource,
    *,
    target: str | Target = DEFAULT_TARGET,
    function: str | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> ScheduleBuilder:
    """Return a builder of a schedule for a program, which can be passed to `compile` as `schedule`.

    The program and its options are as for `compile`; pass the same ones to `compile`, which refuses a builder
    for another program.
    The builder starts at the stage of the program and has the intrinsics and primitives of the target's
    plugin. `lower()` lowers to the next stage, as `compile` does. `function` selects one of several
    functions.
    Raises `ParseError`, `VerifyError`, `PluginError`, and `ArgumentError` for an unknown target.

    >>> import numpy as np, gossamer as gs
    >>> script = '''
    ... @T.prim_func
    ... def row_sums(a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
    ...              m: T.int64, n: T.int64, nnz: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j]
    ... '''
    >>> sch = gs.schedule(script)
    >>> sch.module.stage, sch.lower().lower().module.stage
    ('coordinate', 'loop')
    >>> i, j = sch.get_loops("sums")
    >>> kernel = gs.compile(script, schedule=sch.parallel(i, grain=64))
    >>> y = np.empty(2, np.float32)
    >>> at, rows = np.array([0, 2], np.int32), np.array([0, 2, 2], np.int32)
    >>> kernel(a=np.ones(2, np.float32), y=y, indptr=rows, indices=at, n=3)
    >>> y
    array([2., 0.], dtype=float32)
    """
    from gossamer_schedule import ScheduleBuilder

    module = verify(specialized_module(program, specialize=specialize, dtypes=dtypes))
    lower, (_, resolved) = stage_lowering(target), resolve_elsewhere(target)
    plugin = plugin_of(resolved)
    return ScheduleBuilder(
        module,
        function=function,
        intrinsics=plugin.intrinsics,
        primitives=plugin.primitives,
        lower=lower,
    )
