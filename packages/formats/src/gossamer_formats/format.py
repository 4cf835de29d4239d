"""A format of tensors: its description, and the parameters of conversions to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from gossamer_formats.external_formats.binsparse_format import BinsparseFormat
from gossamer_formats.external_formats.scipy_matrix import ScipyMatrix
from gossamer_formats.external_formats.torch_layout import TorchLayout
from gossamer_formats.pruning.pruning_rule import PruningRule
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.support.arrays import Array

ContentsOrder: TypeAlias = Callable[[Array, Mapping[str, int]], Array]
"""Determines the order of an index array. Takes the number of elements for each possible value, and the
conversion parameters. Returns the distinct values to store, in order; every value that occurs must be
included."""


PartsOfMatrix: TypeAlias = Callable[[tuple[int, ...], Mapping[str, int]], Sequence[Any]]
"""Takes the shape of a matrix and the conversion parameters; returns the list of formats of its parts, as
`decompose` takes it."""

MAX_VARIANTS = 64
"""The number of descriptions that the function of a format keeps: one for each choice of dtypes and sizes, of
which a program has a few. Equal descriptions are one object then, which caches find without comparing."""


class Format(msgspec.Struct, frozen=True):
    """A format of tensors. Conversions from and to it are derived from its description.

    `docs/formats.md` has an example.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> Format("also_csr", csr).describe("float32").buffer.axes
    ('I', 'J')
    """

    name: str
    describe: Callable[..., FormatDescription]
    """Takes the dtype of the values, and `ndim` if the format `is_of_any_ndim`."""
    parameters: Mapping[str, int | None] = {}
    """The options of a conversion, with their defaults (None: the option is required; 0: `orders` choose).
    Those that are sizes of the description set these sizes."""
    orders: Mapping[str, ContentsOrder] = {}
    """Functions by the name of an index array, which order its contents. They take all parameters."""
    is_of_any_ndim: bool = False
    example_parameters: Mapping[str, int] = {}
    """The options with which `gossamer formats` draws a matrix of 4 by 6: the required ones, and those whose
    defaults are too large."""
    parts_for_products: PartsOfMatrix | None = None
    """Returns the parts in which operators store a matrix if products with these are faster than with the
    whole matrix in this format; None if they are not."""
    uses_stats: bool = False
    """True if the default schedule over a part of a matrix depends on the statistics of the part. Parts in
    other formats share a kernel, whatever their sizes."""
    scipy: ScipyMatrix | None = None
    """The matrices of SciPy with this name."""
    torch: TorchLayout | None = None
    """The layout of torch's tensors that is this format."""
    binsparse: BinsparseFormat | None = None
    """The names of the format in binsparse files."""
    pruning: PruningRule | None = None
    """The rule by which `prune` makes a matrix of the format."""

    def __hash__(self) -> int:
        return hash(self.name)
