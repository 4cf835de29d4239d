"""A format of tensors: its description, and the parameters of conversions to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec

from gossamer_ir.errors import InternalError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array

ContentsOrder: TypeAlias = Callable[[Array, Mapping[str, int]], Array]
"""Determines the order of an index array. Takes the number of elements for each possible value, and the
conversion parameters. Returns the distinct values to store, in order; every value that occurs must be
included."""

MAX_VARIANTS = 64
"""The number of descriptions that the function of a format keeps: one for each choice of dtypes and sizes, of
which a program has a few. Equal descriptions are one object then, which caches find without comparing."""


class Adapter(msgspec.Struct, frozen=True):
    """A record about a format for code that knows more than its description."""


T = TypeVar("T", bound=Adapter)


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
    """The options for a small matrix, such as one of 4 by 6: the required ones, and those whose defaults are
    too large."""
    adapters: tuple[Adapter, ...] = ()
    """One adapter of a type at most. The modules that use them define the types: `ScipyMatrix`, `TorchLayout`
    and `BinsparseFormat` (the same format elsewhere), `PruningRule` (for `prune`), and `ProductStorage` (for
    operators)."""

    def __post_init__(self) -> None:
        """Raise `InternalError` if two adapters have one type: `adapter` would find the first one only."""
        kinds = [type(adapter).__name__ for adapter in self.adapters]
        if len({*map(type, self.adapters)}) < len(kinds):
            raise InternalError(
                f"The format '{self.name}' has several adapters of one type: {', '.join(kinds)}."
            )

    def adapter(self, kind: type[T]) -> T | None:
        """Return the adapter of a type; None if the format has none.

        >>> from gossamer_formats.descriptions.csr import FORMAT
        >>> from gossamer_formats.external_formats.torch_layout import TorchLayout
        >>> from gossamer_formats.product_storage import ProductStorage
        >>> FORMAT.adapter(TorchLayout).indptr, FORMAT.adapter(ProductStorage)
        ('crow_indices', None)
        """
        for adapter in self.adapters:
            if isinstance(adapter, kind):
                return adapter
        return None

    def __hash__(self) -> int:
        return hash(self.name)
