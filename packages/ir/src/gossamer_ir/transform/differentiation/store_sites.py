"""The stores of a function at the coordinate stage, each with the iterations and conditions around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.build import var_name
from gossamer_ir.core.iteration_axes import all_axis_names
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Binary,
    Expr,
    Function,
    If,
    Iteration,
    IterationAxis,
    Let,
    Load,
    ReduceOp,
    SparseBuffer,
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.transform.differentiation.derivatives import neg
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve

StoreOp: TypeAlias = Literal["assign"] | ReduceOp


class IterationNest(msgspec.Struct, frozen=True, kw_only=True):
    """The iterations and conditions around a statement. Variables of lets are replaced by their values."""

    name: str
    """The label of the innermost iteration."""
    axes: tuple[IterationAxis, ...]
    """The axes of all iterations around it, outermost first."""
    kinds: str
    vars: tuple[str, ...]
    iteration_ids: tuple[int, ...]
    """For each variable, the number of its iteration in the function."""
    conditions: tuple[Expr, ...]
    """They all hold where the statement runs. A later one may be evaluated only if the earlier ones hold."""


class StoreSite(IterationNest, frozen=True, kw_only=True):
    """A store with all that decides when it runs."""

    op: StoreOp
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    """The value that is assigned, or combined with the old one."""
    init: Expr | None = None
    """The value before the first update of an element."""


class _Nest(IterationNest, frozen=True, kw_only=True):
    """The nest of a statement, with the inits of the innermost iteration."""

    inits: tuple[Store, ...]

    @classmethod
    def around(cls, function: Function) -> _Nest:
        """Return what surrounds the body of a function: nothing."""
        return cls(
            name=function.name,
            axes=(),
            kinds="",
            vars=(),
            iteration_ids=(),
            conditions=(),
            inits=(),
        )


def store_sites(function: Function) -> tuple[StoreSite, ...]:
    """Return the stores of a function in the order in which they run.

    Raises `UnsupportedError`: `adjoint.statement` for other statements than iterations, stores, lets and
    conditions; `adjoint.init` for an init that is not that of one update in its iteration.
    """
    collector = _SiteCollector()
    collector.visit_body(function.body, _Nest.around(function), {})
    return tuple(collector.sites)


class _SiteCollector:
    def __init__(self) -> None:
        self.sites: list[StoreSite] = []
        self._iterations = 0

    # Other statements: refused.
    def visit_body(self, body: Iterable[Stmt], nest: _Nest, outer: Mapping[str, Expr]) -> None:
        values = dict(outer)
        for stmt in body:
            match stmt:
                case Let(var, value):
                    values[var.name] = resolve(value, values)
                case Store():
                    self._add_store(resolve(stmt, values), nest)
                case If(condition, then_body, else_body):
                    self._visit_branches(
                        resolve(condition, values), then_body, else_body, nest, values
                    )
                case Iteration():
                    self._visit_iteration(stmt, nest, values)
                case _:
                    raise UnsupportedError(
                        "adjoint.statement",
                        f"The adjoint of a statement of type {type(stmt).__name__} is not defined.",
                        hint="Write the program with iterations, stores, lets and conditions.",
                    )

    def _visit_branches(
        self,
        condition: Expr,
        then_body: tuple[Stmt, ...],
        else_body: tuple[Stmt, ...],
        nest: _Nest,
        values: Mapping[str, Expr],
    ) -> None:
        holds = (*nest.conditions, condition)
        self.visit_body(then_body, replace(nest, conditions=holds), values)
        fails = (*nest.conditions, Unary("not", condition))
        self.visit_body(else_body, replace(nest, conditions=fails), values)

    def _visit_iteration(self, node: Iteration, nest: _Nest, values: Mapping[str, Expr]) -> None:
        number = self._iterations = self._iterations + 1
        inits = tuple(stmt for stmt in node.init if isinstance(stmt, Store))
        inner = _Nest(
            name=node.name,
            axes=nest.axes + node.axes,
            kinds=nest.kinds + node.kinds,
            vars=nest.vars + node.vars,
            iteration_ids=(*nest.iteration_ids, *[number] * len(node.vars)),
            conditions=nest.conditions,
            inits=tuple(resolve(init, values) for init in inits),
        )
        before = len(self.sites)
        self.visit_body(node.body, inner, values)
        direct = [site for site in self.sites[before:] if site.iteration_ids[-1] == number]
        used = [site for site in direct if site.init is not None]
        if len(inits) != len(node.init) or len(used) != len(inits):
            raise UnsupportedError(
                "adjoint.init",
                f"The init of iteration '{node.name}' is not that of one update in its body, so that its "
                "adjoint is not defined.",
                hint="Give each update an iteration with an init of its own.",
            )

    def _add_store(self, store: Store, nest: _Nest) -> None:
        reduction = match_reduction(_as_sum(store))
        inits = [init for init in nest.inits if init.buffer == store.buffer]
        is_of_store = len(inits) == 1 and inits[0].indices == store.indices
        self.sites.append(
            StoreSite(
                name=nest.name,
                axes=nest.axes,
                kinds=nest.kinds,
                vars=nest.vars,
                iteration_ids=nest.iteration_ids,
                conditions=nest.conditions,
                op="assign" if reduction is None else reduction.op,
                buffer=store.buffer,
                indices=store.indices,
                value=store.value if reduction is None else reduction.value,
                init=inits[0].value if is_of_store else None,
            )
        )


# Other expressions: they stay as they are.
def _as_sum(store: Store) -> Store:
    """Return a store that subtracts from an element as one that adds the negation: both have one adjoint."""
    match store.value:
        case Binary("sub", Load(store.buffer, store.indices) as old, value):
            return replace(store, value=Binary("add", old, neg(value)))
    return store


def visits_all_elements(site: StoreSite, buffer: SparseBuffer, indices: Sequence[Expr]) -> bool:
    """Return whether the iterations of a store, if it accessed these elements of a buffer under no condition,
    would visit all of them: they are over the buffer's axes, and reduce all others."""
    axis_of_var = dict(zip(site.vars, all_axis_names(site.axes), strict=True))
    indexed = [axis_of_var.get(var_name(index) or "") for index in indices]
    return indexed == list(buffer.axes)


def visits_once(site: StoreSite, indices: Sequence[Expr]) -> bool:
    """Return whether the iterations of a store have no variable besides these indices."""
    return {*site.vars} <= {var_name(index) for index in indices}


def are_exclusive(first: StoreSite, second: StoreSite) -> bool:
    """Return whether two stores are in the two branches of one condition."""
    pairs = product(first.conditions, second.conditions)
    return any(one == Unary("not", other) or other == Unary("not", one) for one, other in pairs)


def require_one_init(site: StoreSite) -> None:
    """Raise `UnsupportedError` if the init of a store runs again for an element: in each iteration around
    that of the init whose variable is in no index. Only the updates after the last one count then."""
    if site.init is None:
        return
    init_id = site.iteration_ids[-1]
    numbers = zip(site.vars, site.iteration_ids, strict=True)
    repeated = {name for name, number in numbers if number != init_id}
    repeated -= {name for index in site.indices for name in free_vars(index)}
    if repeated:
        raise UnsupportedError(
            "adjoint.init",
            f"The init of iteration '{site.name}' runs again for each '{min(repeated)}', so that its adjoint "
            "is not defined.",
            hint="Reduce over all axes in the iteration that has the init.",
        )
