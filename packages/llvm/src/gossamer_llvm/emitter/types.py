"""Types and constants as LLVM text."""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_ir.core.encodings import stored_bits
from gossamer_ir.core.integers import wrap_integer
from gossamer_ir.nodes import Const

_NOT_INTEGERS = {"float32": "float", "float64": "double", "handle": "ptr"}
"""The types of LLVM that are not integers. Floats that LLVM does not compute with are integers, too."""
_SUFFIXES = {"float": "f32", "double": "f64", "ptr": "p0"}
_SCALABLE_LANES = re.compile(r"(?<=<vscale x )\d+|(?<=\.nxv)\d+")
"""The numbers of lanes in types of scalable vectors, and in the names of intrinsics."""

NO_SIGNED_ZEROS = "nsz "
"""The flag of `min` and `max` of floats. The language leaves the sign of a zero result unspecified, and
ordering zeros by sign would take more instructions than the rest of the operation."""


@cache
def value_type(dtype_name: str) -> str:
    """Return the type of a value in a register.

    >>> value_type("float32x16"), value_type("boolxvscalex4"), value_type("uint8")
    ('<16 x float>', '<vscale x 4 x i1>', 'i8')
    """
    dtype = DType.parse(dtype_name)
    return _vector(dtype, _NOT_INTEGERS.get(dtype.scalar, f"i{dtype.bits}"))


@cache
def mask_dtype(dtype_name: str) -> str:
    """Return the dtype of a mask of lanes; `bool` for a scalar.

    >>> mask_dtype("float32x16"), mask_dtype("int64")
    ('boolx16', 'bool')
    """
    return DType.parse(dtype_name).with_scalar("bool").text


@cache
def memory_type(dtype_name: str) -> str:
    """Return the type of a value in memory, where a bool is a byte."""
    dtype = DType.parse(dtype_name)
    return _vector(dtype, "i8") if dtype.kind == "bool" else value_type(dtype_name)


@cache
def pointer_type(dtype: str) -> str:
    """Return the type of a vector with one address for each lane of dtype."""
    return _vector(DType.parse(dtype), "ptr")


@cache
def element_bytes(dtype: str) -> int:
    """Return the size of one element in memory, in bytes."""
    return max(1, DType.parse(dtype).bits // 8)


@cache
def intrinsic_suffix(llvm_type: str) -> str:
    """Return the suffix for a type in the name of an intrinsic.

    >>> intrinsic_suffix("<16 x float>"), intrinsic_suffix("<vscale x 4 x i1>"), intrinsic_suffix("i64")
    ('v16f32', 'nxv4i1', 'i64')
    """
    if not llvm_type.startswith("<"):
        return _SUFFIXES.get(llvm_type, llvm_type)
    *lanes, element = llvm_type[1:-1].split(" x ")
    return f"{'nx' if len(lanes) == 2 else ''}v{lanes[-1]}{intrinsic_suffix(element)}"


def in_llvm_units(text: str, vscale_bits: int) -> str:
    """Return LLVM IR with the lanes of scalable vectors counted for each unit of LLVM's vscale, which has
    `vscale_bits` bits. Types are written with those for each unit of the language's vscale.

    >>> in_llvm_units("call <vscale x 4 x i32> @llvm.stepvector.nxv4i32()", 64)
    'call <vscale x 2 x i32> @llvm.stepvector.nxv2i32()'
    """
    if vscale_bits == VSCALE_UNIT_BITS:
        return text
    return _SCALABLE_LANES.sub(
        lambda lanes: str(int(lanes[0]) * vscale_bits // VSCALE_UNIT_BITS), text
    )


@lru_cache(maxsize=1024)
def constant_text(const: Const) -> str:
    """Return a constant as operand: a decimal integer, or a float by its bits; a narrow float is an integer.

    >>> constant_text(Const("float32", "0.1")), constant_text(Const("bool", "True"))
    ('0x3FB99999A0000000', 'true')
    """
    dtype = DType.parse(const.dtype)
    if dtype.kind == "bool":
        return const.text.lower()
    if not dtype.is_float:
        return str(wrap_integer(int(const.text), dtype.bits))
    value = float(const.text)
    if dtype.computed_in != dtype.scalar:
        return str(stored_bits(value, const.dtype))
    if const.dtype == "float32":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(operand: str, dtype_name: str) -> str:
    """Return a constant operand of the element type in all lanes of dtype."""
    dtype = DType.parse(dtype_name)
    if not dtype.is_vector:
        return operand
    return f"splat ({value_type(dtype.scalar)} {operand})"


def integer_text(value: int, dtype: str) -> str:
    """Return an integer constant in all lanes of dtype, wrapped to its bits."""
    bits = DType.parse(dtype).bits
    return splat(str(wrap_integer(value, bits)), dtype)


def _vector(dtype: DType, element: str) -> str:
    if not dtype.is_vector:
        return element
    return f"<{'vscale x ' if dtype.scalable else ''}{dtype.lanes} x {element}>"
