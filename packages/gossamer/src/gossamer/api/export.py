"""`export`: files for programs without Python, from a program in any form."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.api.compile import ProgramSource, checked_schedule, specialized_module
from gossamer.compilation.build_kernels import DISTRIBUTIONS, compile_artifact
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import registry
from gossamer_backend import Kernel, package_versions
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_support.typed_calls import typed

if TYPE_CHECKING:
    from gossamer_backend.internal_api import Exported
    from gossamer_schedule import ScheduleBuilder


@typed
def export(
    program: ProgramSource | Kernel,
    directory: str | os.PathLike[str],
    *,
    name: str | None = None,
    target: str | Target = DEFAULT_TARGET,
    schedule: Schedule | ScheduleBuilder | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Exported:
    """Write a kernel as an object file, a C header, a JSON manifest and, if this machine has a linker, a
    shared library; return their paths. Kernels for GPUs are PTX, and machine code if `ptxas` is found.

    The program and its options are as for `compile`; the target may name a CPU other than this machine's. A
    kernel that `compile` returned is exported as it is. `name` is the symbol and the base name of the files,
    by default `gossamer_` and the name of the program's function.
    Raises the errors of `compile`, `ArgumentError` (`export.name`, `export.directory`, `export.kernel`)
    and `UnsupportedError` (`backend.export`) if the backend does not make object files. Nothing is written
    then.

    >>> import tempfile, gossamer as gs
    >>> script = '''
    ... @T.prim_func
    ... def scale(x: T.handle, n: T.int64, factor: T.float32) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         with T.block("scale"):
    ...             vi = T.axis.spatial(n, i)
    ...             X[vi] = factor * X[vi]
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     files = gs.export(script, directory)
    ...     print(files.symbol, files.object.name, files.header.name)
    gossamer_scale gossamer_scale.o gossamer_scale.h
    """
    from gossamer_backend.internal_api import export_artifact

    if isinstance(program, Kernel):
        other_target = None if target == DEFAULT_TARGET else target
        _require_nothing_else(other_target, schedule, specialize, dtypes)
        artifact = program.artifact
    else:
        module = specialized_module(program, specialize=specialize, dtypes=dtypes)
        checked = checked_schedule(schedule, module, target=target)
        artifact = compile_artifact(module, target=target, schedule=checked)
    return export_artifact(
        artifact,
        directory,
        name=name,
        versions=package_versions(DISTRIBUTIONS),
        backend=registry.backend(artifact.backend),
    )


def _require_nothing_else(*options: object) -> None:
    if any(item is not None for item in options):
        raise ArgumentError(
            "export.kernel",
            "A kernel that is compiled takes no target, schedule, specialize or dtypes.",
            hint="Give them to compile, or export the program.",
        )
