"""The layout of torch's sparse tensors that corresponds to a format."""

from __future__ import annotations

from gossamer_formats.format import Adapter


class TorchLayout(Adapter, frozen=True):
    """A layout of torch: its `name`, as in `torch.sparse_csr`, and torch's methods that return `indptr` and
    `indices` of a compressed layout (None: the layout has coordinates, in arrays `indices_0`, `indices_1`,
    ...). A format with parameters stores blocks: the parameters are their height and their width."""

    name: str
    indptr: str | None = None
    indices: str | None = None
