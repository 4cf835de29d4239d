"""The buffers that have gradients: those on a path from the differentiated buffers to the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import SparseBuffer
from gossamer_ir.transform.differentiation.store_sites import StoreSite
from gossamer_ir.traversal.buffer_uses import buffers_read


def active_buffers(
    sites: Iterable[StoreSite],
    buffers: Iterable[SparseBuffer],
    wrt: Collection[str],
    outputs: Collection[str],
) -> frozenset[str]:
    """Return the buffers of floats that depend on `wrt` and on which `outputs` depend."""
    sites = tuple(sites)
    floats = {buffer.name for buffer in buffers if DType.parse(buffer.dtype).is_float}
    depending = {*wrt}
    for site in sites:
        if reads_of(site) & depending and site.buffer in floats:
            depending.add(site.buffer)
    needed = {*outputs}
    for site in reversed(sites):
        if site.buffer in needed:
            needed |= reads_of(site) & floats
    return frozenset(depending & needed)


def reads_of(site: StoreSite) -> frozenset[str]:
    """Return the buffers whose elements a store computes with."""
    inits = () if site.init is None else (site.init,)
    return buffers_read(site.value, *inits)
