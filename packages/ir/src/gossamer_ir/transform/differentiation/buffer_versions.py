"""Gives each value that a buffer has in turn a buffer of its own, so that no value is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import index_var
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Function, Load, Node, SparseBuffer
from gossamer_ir.transform.differentiation.store_sites import (
    StoreSite,
    are_exclusive,
    visits_all_elements,
    visits_once,
)
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.walk import collect
from gossamer_support.items_by_name import items_by_name


class VersionedSites(msgspec.Struct, frozen=True):
    """Stores of which each buffer is overwritten by none, and the declarations of their buffers."""

    sites: tuple[StoreSite, ...]
    buffers: tuple[SparseBuffer, ...]


def with_versions(function: Function, sites: Sequence[StoreSite], namer: Namer) -> VersionedSites:
    """Return the stores with a new buffer for each value of a buffer that a later store replaces.

    The last version keeps the name and the parameter, earlier ones become scratch buffers.
    Raises `UnsupportedError`: `adjoint.overwritten` if values are lost that were there before, or if only
    some elements are replaced; `adjoint.order` if the adjoint would depend on the order of iterations.
    """
    declared = sparse_buffers(function.buffers)
    buffers = items_by_name(declared)
    _require_separable(sites)
    numbers = _Numbering(buffers, frozenset(site.buffer for site in sites))
    numbered = [numbers.visit(site) for site in sites]
    names: dict[tuple[str, int], str] = {}
    earlier: list[SparseBuffer] = []
    for name, last in numbers.current.items():
        for number in range(last):
            names[name, number] = namer.fresh(name)
            earlier.append(replace(buffers[name], name=names[name, number], handle=None))
        names[name, last] = name
    renamed = tuple(_rename_versions(site, names) for site in numbered)
    return VersionedSites(renamed, (*declared, *earlier))


class _NumberedSite(msgspec.Struct, frozen=True):
    """A store, the number of the version that it writes, and of each buffer, that which it reads."""

    site: StoreSite
    written: int
    read: Mapping[str, int]


class _Numbering:
    """Visits stores in order and numbers the versions of buffers."""

    def __init__(self, buffers: Mapping[str, SparseBuffer], written: frozenset[str]) -> None:
        self.current: dict[str, int] = {}
        self._buffers = buffers
        self._written = written
        self._is_read: defaultdict[str, bool] = defaultdict(bool)
        self._stores: defaultdict[str, list[StoreSite]] = defaultdict(list)
        """To the current version of each buffer."""

    def visit(self, site: StoreSite) -> _NumberedSite:
        for load in _loads(site):
            self._record_read(load, site)
        read = dict(self.current)
        self._write(site)
        return _NumberedSite(site, self.current[site.buffer], read)

    def _record_read(self, load: Load, site: StoreSite) -> None:
        self._is_read[load.buffer] = True
        if load.buffer in self._written and load.buffer not in self.current:
            raise _overwritten_error(load.buffer, "is read before it is written")
        if load.buffer == site.buffer and load.indices != site.indices:
            raise UnsupportedError(
                "adjoint.order",
                f"Iteration '{site.name}' computes elements of '{load.buffer}' from others that it writes, "
                "so that its adjoint depends on the order of iterations.",
            )

    # Other operations: stores like any other; the reverse pass refuses their reductions.
    def _write(self, site: StoreSite) -> None:
        name, stores = site.buffer, self._stores[site.buffer]
        if name not in self.current:
            if self._is_read[name]:
                raise _overwritten_error(name, "is read before it is written")
            self.current[name] = 0
        elif site.op == "add" and site.init is None:
            if self._is_read[name] or any(store.op in ("min", "max") for store in stores):
                raise _overwritten_error(name, "is updated after its values were used")
        elif self._is_read[name] or not all(are_exclusive(site, store) for store in stores):
            if not _replaces_all(site, self._buffers[name]):
                raise _overwritten_error(name, "is overwritten in part")
            self.current[name] += 1
            stores.clear()
        stores.append(site)
        self._is_read[name] = False


def _overwritten_error(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        "adjoint.overwritten",
        f"The buffer '{name}' {what}, so that the values that its adjoint needs are lost.",
        hint="Write the result into another buffer.",
    )


def _replaces_all(site: StoreSite, buffer: SparseBuffer) -> bool:
    """Return whether a store writes all elements of a buffer. A reduction over an empty axis still writes its
    init."""
    if site.conditions or not visits_all_elements(site, buffer, site.indices):
        return False
    return site.init is not None or visits_once(site, site.indices)


def _rename_versions(numbered: _NumberedSite, names: Mapping[tuple[str, int], str]) -> StoreSite:
    def rule(node: Node) -> Load | None:
        if isinstance(node, Load) and node.buffer in numbered.read:
            return replace(node, buffer=names[node.buffer, numbered.read[node.buffer]])
        return None

    def rename_loads(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(rewrite(expr, rule) for expr in exprs)

    site = numbered.site
    return replace(
        site,
        buffer=names[site.buffer, numbered.written],
        indices=rename_loads(site.indices),
        conditions=rename_loads(site.conditions),
        value=rewrite(site.value, rule),
        init=None if site.init is None else rewrite(site.init, rule),
    )


def _loads(site: StoreSite) -> list[Load]:
    inits = () if site.init is None else (site.init,)
    return collect(Load, site.value, *inits, *site.indices, *site.conditions)


def _require_separable(sites: Sequence[StoreSite]) -> None:
    """Require that stores in one iteration can run in iterations of their own, one after the other.

    It is enough that what one of them writes and another one accesses belongs to one point of the iterations
    around both: its indices have their variables.
    """
    for number, first in enumerate(sites):
        for second in sites[number + 1 :]:
            common = [
                name
                for name, first_version, second_version in zip(
                    first.vars, first.iteration_ids, second.iteration_ids, strict=False
                )
                if first_version == second_version
            ]
            if common:
                _require_own_elements(first, second, common)


def _require_own_elements(first: StoreSite, second: StoreSite, common: Sequence[str]) -> None:
    by_first, by_second = _accesses(first), _accesses(second)
    shared = {first.buffer, second.buffer} & by_first.keys() & by_second.keys()
    if first.buffer == second.buffer and first.op == second.op == "add":
        # Terms may be added in any order; neither value reads the sum.
        shared.discard(first.buffer)
    for name in shared:
        every = [*by_first[name], *by_second[name]]
        if any(not _has_var(every, var) for var in common):
            raise UnsupportedError(
                "adjoint.order",
                f"An iteration around '{first.name}' and '{second.name}' uses elements of '{name}' again, so "
                "that its adjoint depends on the order of iterations.",
                hint="Store the values over the axes of that iteration.",
            )


def _accesses(site: StoreSite) -> dict[str, list[tuple[Expr, ...]]]:
    """Return the indices of all accesses to each buffer."""
    accesses = defaultdict(list, {site.buffer: [site.indices]})
    for load in _loads(site):
        accesses[load.buffer].append(load.indices)
    return accesses


def _has_var(accesses: Sequence[tuple[Expr, ...]], name: str) -> bool:
    """Return whether all accesses have a variable as their index in one dimension."""
    return any(
        all(index == index_var(name) for index in dimension)
        for dimension in zip(*accesses, strict=True)
    )
