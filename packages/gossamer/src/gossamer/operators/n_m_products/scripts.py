"""The script of a product of an N:M matrix for operands of a dtype or a precision."""

from __future__ import annotations

from gossamer_ir.core.dtypes import ROUNDED_OPERANDS
from gossamer_machine.intrinsics.block_products import factor_text
from gossamer_machine.intrinsics.float8_operands import FLOAT8_OPERANDS
from gossamer_machine.intrinsics.n_m_operands import n_m_operands

_TEMPLATE = """\
@T.prim_func
def matmul_24(
    a: T.handle,
    indices: T.handle,
    b: T.handle,
    c: T.handle,
    m: T.int64,
    groups: T.int64,
    feat_size: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 2, "global_symbol": "matmul_24", "tir.noalias": True}})
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed(groups, parent=I)
    J = T.sp.compressed_fixed(G, ({units}, {slots}), indices, "uint8", padded=False)
{pairs}\
    J_detach = T.sp.dense_fixed(groups * {group})
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, G, J{pair_axis}), "{stored}")
    B = T.sp.match_buffer(b, (J_detach, K), "{stored}")
    C = T.sp.match_buffer(c, (I, K), "float32")
{facts}\
    with T.sp.iteration([I, G, J{pair_axis}, K], "{kinds}", "matmul_24") as [i, g, j{pair}, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + {left} * {right}
"""


def n_m_script(operands: str) -> str:
    """Return the script for operands of a dtype or a precision: with two slots of four columns, one of two,
    or two of four pairs of columns."""
    read = n_m_operands(operands)
    is_paired = read.unit_columns > 1
    row = f"g * {read.units} + j"
    factors = f"A[i, g, j{', p' * is_paired}]", f"B[{f'({row}) * 2 + p' if is_paired else row}, k]"
    # Integers are narrowed with the module (`module_of`).
    has_text = operands in (*ROUNDED_OPERANDS, *FLOAT8_OPERANDS)
    left, right = (factor_text(factor, operands) if has_text else factor for factor in factors)
    return _TEMPLATE.format(
        stored=read.stored_as if read.decoded_as else "float32",
        units=read.units,
        slots=read.slots,
        group=read.group,
        pairs="    P = T.sp.dense_fixed(2, parent=J)\n" * is_paired,
        pair_axis=", P" * is_paired,
        pair=", p" * is_paired,
        facts="" if read.limits is None else _facts(*read.limits),
        kinds="SRRRS" if is_paired else "SRRS",
        left=left,
        right=right,
    )


def _facts(least: int, most: int) -> str:
    return "".join(f"    T.assume(in_range({name}, {least}, {most + 1}))\n" for name in "AB")
