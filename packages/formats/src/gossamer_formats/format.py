"""A format of tensors: its description, and the parameters of conversions to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from gossamer_formats.counterparts.binsparse_format import BinsparseFormat
from gossamer_formats.counterparts.scipy_matrix import ScipyMatrix
from gossamer_formats.counterparts.torch_layout import TorchLayout
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

KEPT_VARIANTS = 64
"""The number of descriptions that the function of a format keeps: one for each choice of dtypes and sizes, of
which a program has a few. Equal descriptions are one object then, which caches find without comparing."""


class Format(msgspec.Struct, frozen=True):
    """A format of tensors. Conversions from and to it are derived from its description.

    `describe` takes the dtype of the values, and `dimensions` if `is_of_any_rank`. `parameters` are the
    options of a conversion, with their defaults (None: the option is required; 0: `orders` choose). Those
    that are sizes of the description set these sizes. All are passed to `orders`, functions by the name of an
    index array, which order its contents. `example_parameters` are the options with which `gossamer formats`
    draws a matrix of 4 by 6: the required ones, and those whose defaults are too large. `docs/formats.md` has
    an example.

    Operators read the next two. `parts_for_products` returns the parts in which a matrix is stored if
    products with these are faster than with the whole matrix in this format (None: they are not). A format
    `uses_stats` if the default schedule over a part of a matrix depends on the statistics of the part; parts
    in other formats share a kernel, whatever their sizes.

    The others are the same format elsewhere (None: there is none): the matrices of SciPy with this name, the
    layout of torch's tensors, and the names in binsparse files; and the rule by which `prune` makes a matrix
    of the format.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> Format("also_csr", csr).describe("float32").buffer.axes
    ('I', 'J')
    """

    name: str
    describe: Callable[..., FormatDescription]
    parameters: Mapping[str, int | None] = {}
    orders: Mapping[str, ContentsOrder] = {}
    is_of_any_rank: bool = False
    example_parameters: Mapping[str, int] = {}
    parts_for_products: PartsOfMatrix | None = None
    uses_stats: bool = False
    scipy: ScipyMatrix | None = None
    torch: TorchLayout | None = None
    binsparse: BinsparseFormat | None = None
    pruning: PruningRule | None = None

    def __hash__(self) -> int:
        return hash(self.name)
