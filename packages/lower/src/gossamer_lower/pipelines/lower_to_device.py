"""The pipeline for devices: the passes that make a flat module an entry of the host and kernels."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.pipelines.device_steps import DEVICE_STEPS
from gossamer_lower.pipelines.pass_manager import PassManager


@lowering_pass(takes=("flat",), pipeline=None)
def lower_to_device(module: Module, *, verify_each: bool = False) -> Module:
    """Lower a flat module to an entry that only launches kernels, and the kernels, which backends for GPUs
    compile.

    Raises the errors of the passes. With `verify_each`, raises `InternalError` after the first pass whose
    result is invalid.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> from msgspec.structs import replace
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def scale(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.thread_binding(n, thread="blockIdx.x"):
    ...         X[i] = X[i] * 2.0
    ... ''')
    >>> entry, kernel = lower_to_device(flat).functions
    >>> kernel.body == flat.functions[0].body
    True
    >>> print(body_text(replace(flat, functions=(entry,))))
    T.launch("scale_i", [x, n], threads={"blockIdx.x": n})
    """
    return PassManager(steps=DEVICE_STEPS, is_verifying=verify_each).run(module)
