"""The statements of an adjoint: each adds to the gradients of what a store of the program reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import zero_of
from gossamer_ir.core.constants import constant
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Compare,
    Expr,
    Function,
    Iteration,
    Load,
    Param,
    Select,
    SparseBuffer,
    Stmt,
    Store,
)
from gossamer_ir.transform.differentiation.accumulations import (
    accumulation,
    assignment,
    iterated_store,
)
from gossamer_ir.transform.differentiation.active_buffers import reads_of
from gossamer_ir.transform.differentiation.expression_gradients import Contribution, contributions
from gossamer_ir.transform.differentiation.store_sites import (
    StoreSite,
    require_one_init,
    visits_all_elements,
)
from gossamer_ir.transform.split_init import axes_of_init
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_read
from gossamer_ir.traversal.names import Namer
from gossamer_support.items_by_name import items_by_name

GRADIENT = "_grad"
"""The suffix of the name of a gradient, after that of the buffer or handle."""


class _Ties(msgspec.Struct, frozen=True):
    """The buffer with the number of values that are equal to the result, and the statements that count
    them."""

    count: SparseBuffer
    stmts: tuple[Stmt, ...]


class ReverseSweep:
    """Makes the statements of an adjoint."""

    def __init__(
        self,
        function: Function,
        buffers: Iterable[SparseBuffer],
        active: frozenset[str],
        namer: Namer,
    ) -> None:
        self._axes_by_name = items_by_name(function.axes)
        self.buffers = items_by_name(buffers)
        self.active = active
        self.namer = namer
        self.params: list[Param] = []
        self._gradients: dict[str, SparseBuffer] = {}
        self._initialized: set[str] = set()

    def declare_gradients(self, passed: Sequence[str]) -> None:
        """Declare the gradient of each active buffer; those of `passed` ones have parameters."""
        for name in (*passed, *sorted(self.active - {*passed})):
            buffer = self.buffers[name]
            handle = None
            if name in passed:
                handle = self.namer.fresh(f"{buffer.handle}{GRADIENT}")
                self.params.append(Param(handle, "handle"))
            self._gradients[name] = self._declare(
                replace(buffer, handle=handle), f"{name}{GRADIENT}"
            )

    def _declare(self, buffer: SparseBuffer, name: str) -> SparseBuffer:
        declared = replace(buffer, name=self.namer.fresh(name), fill=None)
        self.buffers[declared.name] = declared
        return declared

    def reversed_body(self, sites: Sequence[StoreSite], results: Sequence[str]) -> tuple[Stmt, ...]:
        body: list[Stmt] = []
        read = {name for site in sites for name in reads_of(site)}
        for name in results:
            if name in read & self.active:
                body.append(self._copied_gradient(name))
        for site in reversed(sites):
            if site.buffer in self.active:
                body += self._adjoint_of(site)
        return tuple(body)

    def _copied_gradient(self, name: str) -> Stmt:
        """Return the copy of the gradient of a result that the program reads again: its total is not that
        which is passed."""
        passed, buffer = self._gradients[name], self.buffers[name]
        total = self._declare(replace(buffer, handle=None), f"{name}_total{GRADIENT}")
        self._gradients[name] = total
        self._initialized.add(name)
        return assignment(total, passed.name)

    # Other operations: refused.
    def _adjoint_of(self, site: StoreSite) -> list[Stmt]:
        require_one_init(site)
        gradient = self._gradients[site.buffer]
        seed: Expr = Load(gradient.name, site.indices, gradient.dtype)
        body: list[Stmt] = []
        if site.op in ("min", "max"):
            ties = self._count_ties(site)
            seed, body = _split_among_ties(site, seed, ties.count), [*ties.stmts]
        elif site.op not in ("assign", "add"):
            raise _reduction_error(site, f"with the reducer '{site.op}'")
        for contribution in _sum_contributions(contributions(site.value, seed, self.active)):
            body += self._add_contribution(site, contribution)
        if site.init is not None:
            for contribution in _sum_contributions(contributions(site.init, seed, self.active)):
                body += self._add_contribution(
                    _site_of_init(site, self._axes_by_name), contribution
                )
        return body

    def _add_contribution(self, site: StoreSite, contribution: Contribution) -> list[Stmt]:
        """Return the statements that add a contribution to the gradient of its buffer."""
        gradient = self._gradients[contribution.load.buffer]
        indices = contribution.load.indices
        is_first = contribution.load.buffer not in self._initialized
        self._initialized.add(contribution.load.buffer)
        conditions = (*site.conditions, *contribution.conditions)
        body: list[Stmt] = []
        # A gradient that is passed holds zeros where nothing is added to it.
        if is_first and gradient.handle is None:
            is_first = not conditions and visits_all_elements(site, gradient, indices)
            if not is_first:
                body.append(assignment(gradient, zero_of(gradient.dtype)))
        body.append(
            accumulation(
                site, gradient, indices, contribution.gradient,
                conditions=conditions, is_first=is_first,
            )
        )  # fmt: skip
        return body

    def _count_ties(self, site: StoreSite) -> _Ties:
        """Return how many values that are reduced by `min` or `max` are equal to the result."""
        buffer = self.buffers[site.buffer]
        if site.init is None or buffers_read(site.init) & self.active:
            raise _reduction_error(site, "without an init that is constant")
        count = self._declare(replace(buffer, handle=None), f"{buffer.name}_count")
        one, zero = constant(1, buffer.dtype), zero_of(buffer.dtype)
        tie = Select(_is_result(site, buffer.dtype), one, zero)
        counted = accumulation(
            site, count, site.indices, tie, conditions=site.conditions, is_first=True
        )
        # Under conditions, an iteration does not initialize what it adds to.
        zeros = [assignment(count, zero)] if site.conditions else []
        return _Ties(count, (*zeros, counted))

    def recompute_scratch(
        self, sites: Sequence[StoreSite], body: tuple[Stmt, ...]
    ) -> tuple[Stmt, ...]:
        """Return the stores of the program to scratch buffers whose values a body reads."""
        needed = set(buffers_accessed(*body))
        stmts: list[Stmt] = []
        for site in reversed(sites):
            if site.buffer in needed and self.buffers[site.buffer].handle is None:
                stmt = _original(site, self.buffers[site.buffer].dtype)
                stmts.insert(0, stmt)
                needed |= buffers_accessed(stmt)
        return tuple(stmts)


def _is_result(site: StoreSite, dtype: str) -> Expr:
    """Return the condition that a value which is reduced is equal to the result."""
    return Compare("eq", site.value, Load(site.buffer, site.indices, dtype))


def _split_among_ties(site: StoreSite, seed: Expr, count: SparseBuffer) -> Expr:
    """Return the gradient of a value that was reduced by `min` or `max`: that of the result, divided by the
    number of values that are equal to it, for these, and 0 for others."""
    number = Load(count.name, site.indices, count.dtype)
    share = Binary("div", seed, number)
    return Select(_is_result(site, count.dtype), share, zero_of(count.dtype))


def _site_of_init(site: StoreSite, axes_by_name: Mapping[str, Axis]) -> StoreSite:
    """Return the store of an init: it runs for each element, under no condition."""
    assert site.init is not None
    init = Store(site.buffer, site.indices, site.init)
    node = Iteration(site.name, site.axes, site.kinds, site.vars, (), (init,))
    kept = axes_of_init(node, axes_by_name)
    return replace(
        site,
        axes=tuple(axis for axis, _ in kept),
        kinds="S" * len(kept),
        vars=tuple(var for _, var in kept),
        conditions=(),
    )


def _original(site: StoreSite, dtype: str) -> Stmt:
    """Return the iteration of a store."""
    value = site.value
    if site.op != "assign":
        value = Binary(site.op, Load(site.buffer, site.indices, dtype), value)
    store = Store(site.buffer, site.indices, value)
    init = () if site.init is None else (replace(store, value=site.init),)
    return iterated_store(site, store, init=init, conditions=site.conditions)


def _reduction_error(site: StoreSite, what: str) -> UnsupportedError:
    return UnsupportedError(
        "adjoint.reduction",
        f"Iteration '{site.name}' reduces '{site.buffer}' {what}, so that its adjoint is not defined.",
        hint="Sums have adjoints, and minima and maxima with a constant init.",
    )


def _sum_contributions(terms: Iterable[Contribution]) -> list[Contribution]:
    """Return contributions with those to the same elements under the same conditions added up."""
    sums: dict[tuple[Load, tuple[Expr, ...]], Contribution] = {}
    for term in terms:
        key = (term.load, term.conditions)
        if key in sums:
            total = Binary("add", sums[key].gradient, term.gradient)
            sums[key] = replace(term, gradient=total)
        else:
            sums[key] = term
    return list(sums.values())
