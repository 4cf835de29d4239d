"""`format_decompose`: apply format rewrite rules to a program."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import Module
from gossamer_ir.script import print_format
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.format_rewriting.format_rewrite_rule import FormatRewriteRule
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.primitives.coordinate.decompose_format import decompose_format
from gossamer_support.typed_calls import typed


@typed
def format_decompose(
    module: Module,
    rules: Sequence[FormatRewriteRule],
    *,
    include_format_rewrite_blks: bool = True,
) -> PrimitiveResult:
    """Return the program in which buffers are stored in the formats of rules, as a step `decompose_format`.

    It computes the same as the published pass where that is right: the result is initialized once, before all
    parts, and padding is skipped. With `include_format_rewrite_blks`, the program takes the undivided tensor,
    too, and copies its elements first.

    Raises `ScheduleError`: `schedule.format_decompose.buffers` unless all rules rewrite the same buffers,
    `schedule.format_decompose.axes` if a rule is for buffers with other axes, and those of
    `decompose_format`.

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_testkit.show import body_text
    >>> ell = '''
    ... @T.prim_func
    ... def ell(a: T.handle, indptr: T.handle, rows: T.handle, indices: T.handle,
    ...         m: T.int32, n: T.int32, stored: T.int32, width: T.int32) -> None:
    ...     O = T.dense_fixed(1)
    ...     I = T.sparse_variable(O, (m, stored), (indptr, rows))
    ...     J = T.sparse_fixed(I, (n, width), indices)
    ...     A = T.match_sparse_buffer(a, (O, I, J), "float32")
    ...     T.evaluate(0)
    ... '''
    >>> rule = FormatRewriteRule(
    ...     "0", ell, ["A"], ["I", "J"], ["O", "I", "J"], {"I": ["O", "I"], "J": ["J"]},
    ...     lambda i, j: (0, i, j), lambda o, i, j: (i, j),
    ... )
    >>> result = format_decompose(SPMM_COORDINATE, [rule], include_format_rewrite_blks=False)
    >>> print(body_text(result.module))
    with T.sp.iteration([I, K], "SS", "csrmm_init") as [i_init, k_init]:
        C[i_init, k_init] = 0.0
    with T.sp.iteration([O_0, I_0, J_0, K], "SSRS", "csrmm_0") as [o_0, i_0, j_0, k_1]:
        C[i_0, k_1] = C[i_0, k_1] + A_0[o_0, i_0, j_0] * B[j_0, k_1]
    """
    buffers = rules[0].buffers_to_rewrite if rules else ()
    for rule in rules:
        if rule.buffers_to_rewrite != buffers:
            raise schedule_error(
                "format_decompose.buffers",
                f"Rule '{rule.name}' rewrites {', '.join(rule.buffers_to_rewrite)}, and rule "
                f"'{rules[0].name}' rewrites {', '.join(buffers)}; expected the same buffers.",
                hint="Apply the rules of other buffers in a call of their own.",
            )
        _require_axes(module, rule)
    return decompose_format(
        module,
        buffers,
        names=tuple(rule.name for rule in rules),
        formats=tuple(print_format(rule.description) for rule in rules),
        converts=include_format_rewrite_blks,
    )


def _require_axes(module: Module, rule: FormatRewriteRule) -> None:
    """Require that the buffers of a rule have its axes, in their order."""
    if rule.axes_before_rewrite is None:
        return
    for function in module.functions:
        for buffer in sparse_buffers(function.buffers):
            if buffer.name in rule.buffers_to_rewrite and buffer.axes != rule.axes_before_rewrite:
                raise schedule_error(
                    "format_decompose.axes",
                    f"Rule '{rule.name}' rewrites buffers with the axes "
                    f"{', '.join(rule.axes_before_rewrite)}; those of '{buffer.name}' are "
                    f"{', '.join(buffer.axes)}.",
                )
