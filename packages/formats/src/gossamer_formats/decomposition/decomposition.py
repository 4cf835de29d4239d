"""A tensor in parts, each in a format of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer_formats.arithmetic.operators_by_csr import OperatorsByCsr
from gossamer_formats.arithmetic.refused_operators import RefusedOperators
from gossamer_formats.array_protocol import NotAnArray
from gossamer_formats.conversion.destination.conversion_options import Zeros
from gossamer_formats.decomposition.part import Part, part_of
from gossamer_formats.memo import MemoKey, SparsityPattern
from gossamer_formats.permutation import stored_count, with_fill
from gossamer_formats.registry.operators import operator_of
from gossamer_formats.storage import values_handle
from gossamer_formats.tensors.sparse_tensor import MATRIX_IN_CSR, SparseTensor
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import FormatDescription, Module
from gossamer_ir.transform.decomposition.part_parameter import part_parameter
from gossamer_ir.transform.decomposition.rows_of_parts import RowsOfParts
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, readable_size
from gossamer_support.typed_calls import typed

if TYPE_CHECKING:
    from gossamer_formats.decomposition.coverage import Coverage


class Decomposition(OperatorsByCsr, RefusedOperators, NotAnArray):
    """A tensor in parts, which together hold each element once. Made by `decompose`.

    `name` is that of the composable format; `parts` are those that have elements. `value_count` is the number
    of values of the tensor that was decomposed, to which the permutations of the parts refer.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import SparseTensor, decompose
    >>> A = decompose(SparseTensor(eye_array(3)), "hyb")
    >>> A
    Decomposition(hyb, 3 by 3, 3 nonzeros, float64, 48 bytes, 1 part: p0b0)
    >>> A.with_values(np.array([4.0, 5.0, 6.0])).toarray().diagonal()
    array([4., 5., 6.])
    """

    @typed
    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: Any,
        parts: Sequence[Part],
        *,
        value_count: int,
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.parts = tuple(parts)
        self.value_count = value_count
        self.memo: dict[MemoKey[Any], Any] = {}
        self.pattern = SparsityPattern()

    def coverage(self, dimension: int = 0) -> Coverage:
        """Return the parts that may initialize a result along a dimension, and what they leave out.

        >>> from scipy.sparse import csr_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> matrix = SparseTensor(csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]])))
        >>> decompose(matrix, "hyb", k=1).coverage()
        Coverage(initializing=(0, 1), adding=(), left=array([1]))
        """
        coverages = _COVERAGES.get(self.pattern, _no_coverages)
        coverage = coverages.get(dimension)
        if coverage is None:
            from gossamer_formats.decomposition.coverage import coverage_of

            coverage = coverages[dimension] = coverage_of(
                [part.tensor.storage for part in self.parts], dimension, self.shape[dimension]
            )
        return coverage

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """The number of elements in all parts; slots without an element do not count."""
        return sum(stored_count(part.permutation) for part in self.parts)

    @property
    def format(self) -> str:
        """The name of the composable format, as that of a `SparseTensor`."""
        return self.name

    @property
    def nbytes(self) -> int:
        """The size of the arrays of all parts in bytes, without the permutations."""
        return sum(part.tensor.nbytes for part in self.parts)

    @property
    def arguments(self) -> dict[str, Array | int]:
        """The arrays and sizes of all parts by the parameters of a rewritten program (`rewrite`)."""
        arguments: dict[str, Array | int] = {}
        for part in self.parts:
            part_arguments: dict[str, Array | int] = {**part.tensor.arrays, **part.symbolic_sizes}
            arguments |= {
                part_parameter(name, part.name): value for name, value in part_arguments.items()
            }
        return arguments

    @property
    def T(self) -> SparseTensor:  # noqa: N802 - NumPy's name
        """The transposed matrix in CSR."""
        return self.tocsr().T

    def tocsr(self) -> SparseTensor:
        """Return the matrix in CSR, converted once.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> decompose(SparseTensor(eye_array(3)), "hyb").tocsr().arrays["indices"]
        array([0, 1, 2], dtype=int32)
        """
        return MATRIX_IN_CSR.get(self, lambda matrix: matrix.asformat("csr"))

    def asformat(
        self,
        format: str | FormatDescription,
        *,
        zeros: Zeros | None = None,
        index_dtype: str | None = None,
        order: Array | None = None,
        **parameters: int,
    ) -> Any:
        """Return the matrix in another format, as `SparseTensor.asformat` does: a `SparseTensor`, or a
        `Decomposition` for a composable format.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> A = decompose(SparseTensor(eye_array(4)), "hyb")
        >>> A.asformat("bsr", block_rows=2, block_columns=2)
        SparseTensor(bsr, 4 by 4, 8 nonzeros, float64, 84 bytes)
        """
        from gossamer_formats.decomposition.elements_of_parts import elements_of_parts

        rows, columns = self.shape
        matrix: Any = elements_of_parts(self.parts, (rows, columns), self.dtype)
        return matrix.asformat(
            format, zeros=zeros, index_dtype=index_dtype, order=order, **parameters
        )

    def astype(self, dtype: Any) -> Decomposition:
        """Return the decomposition with its values converted to float32 or float64; index arrays are shared.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> decompose(SparseTensor(eye_array(3)), "hyb").astype("float32").dtype
        dtype('float32')
        """
        parts = [part._replace(tensor=part.tensor.astype(dtype)) for part in self.parts]
        kept = np.dtype(dtype) if not parts else parts[0].tensor.dtype
        converted = Decomposition(self.name, self.shape, kept, parts, value_count=self.value_count)
        converted.pattern = self.pattern
        return converted

    def check(self) -> None:
        """Check the arrays of all parts, and that no element is in two of them.

        Raises `FormatError`: those of `require_valid_storage`, and `format.parts`.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> decompose(SparseTensor(eye_array(3)), "hyb").check()
        """
        from gossamer_formats.decomposition.part_checks import require_disjoint

        require_disjoint(self.parts)

    def toarray(self) -> Array:
        """Return the dense array, the sum of the parts."""
        dense = np.zeros(self.shape, self.dtype)
        for part in self.parts:
            dense += part.tensor.toarray()
        return dense

    @typed
    def with_values(self, values: Array) -> Decomposition:
        """Return the decomposition with other values, in the order of those of the tensor that was
        decomposed. Structure and permutations are shared, so this takes one pass. The dtype is kept.

        Raises `ArgumentError` (`decomposition.values`) unless the array has one value for each.
        """
        if values.shape != (self.value_count,):
            raise ArgumentError(
                "decomposition.values",
                f"The values have the shape {values.shape}; expected ({self.value_count},), those of the "
                "tensor that was decomposed.",
            )
        extended = with_fill(values.astype(self.dtype, copy=False), 0)
        parts = [_with_values(part, extended[part.permutation]) for part in self.parts]
        updated = Decomposition(
            self.name, self.shape, self.dtype, parts, value_count=self.value_count
        )
        updated.pattern = self.pattern
        return updated

    def gather_values(self, values: Sequence[Array]) -> Array:
        """Return values in the order of the tensor that was decomposed, from those of the parts. Values of
        the tensor that are in no part, zeros that fill dense axes, are zero.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> A = decompose(SparseTensor(eye_array(3)), "hyb")
        >>> A.gather_values([part.tensor.storage.values for part in A.parts])
        array([1., 1., 1.])
        """
        dtype = np.result_type(*values) if values else self.dtype
        # One more at the end, which `UNSTORED` selects.
        gathered = np.zeros(self.value_count + 1, dtype)
        for part, part_values in zip(self.parts, values, strict=True):
            gathered[part.permutation] = part_values.reshape(-1)
        return gathered[:-1]

    def rewrite(
        self,
        program: Module | str,
        buffer_name: str = "A",
        *,
        declares_rows: bool = False,
        at_once: bool = False,
    ) -> Module:
        """Return a program at the coordinate stage, in which the parts are stored instead of a buffer.

        The program has one iteration for each part. Those come first that have rows of their own, which they
        initialize; the others add. If there are rows that none of these has, all are initialized before. The
        parameters of a part are those of its format, with the name of the part at the end; `arguments` has
        their values. For several buffers that share the axes, use the schedule primitive `decompose_format`.

        If it `declares_rows`, the program declares for each two parts that initialize rows that these are
        different ones. Then one parallel loop can run the iterations of all these parts
        (`horizontal_fuse`), which the default schedule does; each call of a kernel checks the rows.

        If all parts are to be computed `at_once`, in one launch of a GPU, only parts initialize that have no
        rows in common with any other one, and the program declares for each two parts without common rows
        that these are different ones, also if the program has no init and adds to its output. Where parts
        share rows, or one has a row several times, the default schedule of a machine with grids of threads
        accumulates atomically.

        Raises `FormatError` (`format.program`) if a format cannot be used by the program.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats import SparseTensor, decompose
        >>> A = decompose(SparseTensor(eye_array(3, dtype=np.float32)), "hyb")
        >>> program = A.rewrite('''
        ... @T.prim_func
        ... def total(a: T.handle, y: T.handle, p: T.handle, x: T.handle, m: T.int64, n: T.int64) -> None:
        ...     I = T.sp.dense_fixed(m)
        ...     J = T.sp.compressed_varied(I, n, (p, x), "int32")
        ...     A = T.sp.match_buffer(a, (I, J), "float32")
        ...     Y = T.sp.match_buffer(y, (I,), "float32")
        ...     with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        ...         with T.init():
        ...             Y[i] = 0.0
        ...         Y[i] = Y[i] + A[i, j]
        ... ''')
        >>> [param.name for param in program.functions[0].params]
        ['y', 'm', 'n', 'data_p0b0', 'rows_p0b0', 'indices_p0b0', 'stored_p0b0']
        """
        # Operators whose kernels are cached import this module, but never rewrite a program.
        from gossamer_formats.decomposition.program_over_parts import program_over_parts
        from gossamer_ir.script import parse_module

        module = parse_module(program) if isinstance(program, str) else program
        rows = (
            self._rows_at_once
            if at_once
            else partial(self._rows_of_parts, are_declared=declares_rows)
        )
        return program_over_parts(module, buffer_name, self.parts, rows=rows)

    def _rows_of_parts(self, dimension: int, *, are_declared: bool) -> RowsOfParts:
        initializing, _, left = self.coverage(dimension)
        names = tuple(self.parts[number].name for number in initializing)
        pairs = tuple(combinations(names, 2)) if are_declared else ()
        return RowsOfParts(names, are_all=not left.size, disjoint=pairs)

    def _rows_at_once(self, dimension: int) -> RowsOfParts:
        from gossamer_formats.decomposition.coverage import disjoint_pairs

        storages = [part.tensor.storage for part in self.parts]
        pairs = disjoint_pairs(storages, dimension)
        initializing, _, left = self.coverage(dimension)
        alone = [
            number
            for number in initializing
            if sum(number in pair for pair in pairs) == len(storages) - 1
        ]
        return RowsOfParts(
            tuple(self.parts[number].name for number in alone),
            are_all=not left.size and len(alone) == len(initializing),
            disjoint=tuple((self.parts[a].name, self.parts[b].name) for a, b in pairs),
        )

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a dense matrix or vector; needs distribution `gossamer`."""
        if hasattr(other, "tocsr"):
            raise self._operator_error("@")
        return operator_of("matmul")(self, other)

    def __repr__(self) -> str:
        shape = " by ".join(str(length) for length in self.shape)
        names = ", ".join(part.name for part in self.parts)
        return (
            f"Decomposition({self.name}, {shape}, {amount(self.nnz, 'nonzero')}, {self.dtype}, "
            f"{readable_size(self.nbytes)}, {amount(len(self.parts), 'part')}{names and f': {names}'})"
        )


_COVERAGES = MemoKey[dict[int, "Coverage"]]("the coverage by dimension")


def _no_coverages(_pattern: SparsityPattern) -> dict[int, Coverage]:
    return {}


def _with_values(part: Part, values: Array) -> Part:
    storage = part.tensor.storage
    arrays: Mapping[str, Array] = {**storage.arrays, values_handle(storage.description): values}
    return part_of(
        part.name,
        storage._replace(arrays=arrays),
        part.permutation,
        fixed_sizes=part.fixed_sizes,
    )
