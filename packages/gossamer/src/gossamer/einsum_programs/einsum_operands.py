"""Reads the operands of a sum of products, and chooses the one whose stored elements are iterated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer.einsum_programs.dense_program import EinsumProgram, ReducerName
from gossamer.einsum_programs.subscripts import Subscripts, parse_subscripts, require_operand_count
from gossamer_formats import Decomposition, SparseTensor
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import either, in_quotes

DTYPES = ("float32", "float64")


class EinsumOperands(msgspec.Struct, frozen=True, eq=False):
    """The operands by their numbers, and the size of each letter."""

    program: EinsumProgram
    sparse: Mapping[int, SparseTensor]
    dense: Mapping[int, Array]
    sizes: Mapping[str, int]


def read_operands(
    text: str, operands: Sequence[Any], *, reducer: ReducerName, epilogue: str | None
) -> EinsumOperands:
    """Return the operands of subscripts, with their values in one dtype.

    Raises `ArgumentError` and `UnsupportedError`: see `gossamer.einsum`.
    """
    if reducer not in get_args(ReducerName):
        raise ArgumentError(
            "einsum.reducer",
            f"The reducer is {reducer!r}; expected {either(map(repr, get_args(ReducerName)))}.",
        )
    subscripts = parse_subscripts(text)
    require_operand_count(text, subscripts, len(operands))
    read = [_read_operand(operand) for operand in operands]
    sizes = _sizes(subscripts, read)
    dtype = _common_dtype(read)
    diagonals = [*map(_diagonal, subscripts.operands, read)]
    subscripts = replace(subscripts, operands=tuple(letters for letters, _ in diagonals))
    read = [operand for _, operand in diagonals]
    sparse = {
        number: tensor.astype(dtype)
        for number, tensor in enumerate(read)
        if isinstance(tensor, SparseTensor)
    }
    dense = {
        number: np.ascontiguousarray(array, dtype)
        for number, array in enumerate(read)
        if not isinstance(array, SparseTensor)
    }
    iterated = _iterated_operand(subscripts, sparse) if sparse else None
    # Elements of other formats are not found by their coordinates.
    sparse = {
        number: tensor if number == iterated or tensor.ndim != 2 else tensor.tocsr()
        for number, tensor in sparse.items()
    }
    program = EinsumProgram(subscripts, dtype, iterated, reducer, epilogue)
    return EinsumOperands(program, sparse, dense, sizes)


def _read_operand(operand: Any) -> SparseTensor | Array:
    if isinstance(operand, SparseTensor):
        return operand
    if isinstance(operand, Decomposition):
        return operand.tocsr()
    if hasattr(operand, "tocsr"):
        return SparseTensor(operand)
    if getattr(operand, "requires_grad", False):
        raise ArgumentError(
            "operand.kind",
            "An operand is a tensor of torch that requires a gradient; results of gossamer.einsum have none.",
            hint="Use gossamer_torch, or operand.detach().",
        )
    return np.asarray(operand)


def _diagonal(letters: str, operand: SparseTensor | Array) -> tuple[str, SparseTensor | Array]:
    """Return an operand with each letter once, and its letters: the elements of a dense one that have equal
    coordinates where a letter is repeated."""
    unique = "".join(dict.fromkeys(letters))
    if isinstance(operand, SparseTensor) or unique == letters:
        return letters, operand
    return unique, np.einsum(f"{letters}->{unique}", operand)


def _sizes(subscripts: Subscripts, operands: Sequence[SparseTensor | Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for number, (letters, operand) in enumerate(zip(subscripts.operands, operands, strict=True)):
        if len(operand.shape) != len(letters):
            raise ArgumentError(
                "einsum.shape",
                f"Operand {number} has the shape {operand.shape}; expected a dimension for each letter of "
                f"'{letters}'.",
            )
        for letter, size in zip(letters, operand.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ArgumentError(
                    "einsum.shape",
                    f"The dimension '{letter}' of operand {number} has the size {size}; another operand has "
                    f"{sizes[letter]}.",
                )
    return sizes


def _common_dtype(operands: Sequence[SparseTensor | Array]) -> str:
    dtype = np.result_type(*(operand.dtype for operand in operands)).name
    if dtype not in DTYPES:
        raise ArgumentError(
            "einsum.dtype",
            f"The operands have the common dtype {dtype}; expected {either(DTYPES)}.",
            hint="Convert one of them with astype.",
        )
    return dtype


def _iterated_operand(subscripts: Subscripts, sparse: Mapping[int, SparseTensor]) -> int:
    """Return the operand whose stored elements are iterated: the one with the fewest elements of those that
    have all letters of the sparse ones. Elements of the others are looked up."""
    letters = {number: subscripts.operands[number] for number in sparse}
    every = {*"".join(letters.values())}
    candidates = [number for number, term in letters.items() if {*term} == every]
    if not candidates:
        raise UnsupportedError(
            "einsum.co_iteration",
            f"The sparse operands have the subscripts {in_quotes(letters.values())}, of which none has all "
            "letters, so that several would be iterated together, which is not implemented.",
            hint="Convert all but one of them with toarray().",
        )
    iterated = min(candidates, key=lambda number: sparse[number].nnz)
    if len({*letters[iterated]}) < len(letters[iterated]):
        raise UnsupportedError(
            "einsum.diagonal",
            f"The subscripts '{letters[iterated]}' of a sparse operand have a letter twice; its diagonal "
            "is not iterated.",
            hint="Take the diagonal before.",
        )
    return iterated
