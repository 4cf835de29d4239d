"""Stores a sparse tensor in several formats at once, and computes with each part.

The transformation is that of SparseTIR (Ye and others, ASPLOS 2023), with two differences. Elements are
initialized once, before all parts, also those that no part reaches. And a part may have slots without an
element only if these contribute nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.logical_elements import logical_shape, stores_only_elements
from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.core.annotations import PREPROCESS
from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.build import fill_of, index_var, integer_value
from gossamer_ir.core.conditions import conjunction, in_range
from gossamer_ir.core.constants import value_of
from gossamer_ir.core.iteration_axes import (
    all_axis_names,
    attached_to,
    axis_names,
    iterated_axes,
)
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Cast,
    Expr,
    FormatDescription,
    Function,
    If,
    Iteration,
    IterationAxis,
    Load,
    OverAxis,
    SparseBuffer,
    Stmt,
    Store,
    Unary,
    Var,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.transform.format_part import FormatPart, format_part
from gossamer_ir.traversal.effects import ACCESSES, buffers_accessed, buffers_written
from gossamer_ir.traversal.fact_kinds import buffers_of_fact
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect, statements, walk


class FormatRewriteRule(NamedTuple):
    """A part: the format in which it is stored, and the name that is added to those of the description."""

    name: str
    format: FormatDescription


class DecompositionError(Exception):
    """A program that cannot be decomposed. `reason` is the last part of an error code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def decompose_function(
    function: Function,
    buffers: Sequence[str],
    rules: Sequence[FormatRewriteRule],
    *,
    converts: bool = False,
) -> Function:
    """Return the function with sparse buffers, which share their axes, stored in parts.

    Each iteration that uses the buffers is replaced by one for each rule. What it initializes outside of
    the buffers is initialized before, in an iteration of its own. The parts then accumulate. The parameters
    of the undivided tensor are removed, unless the function `converts`: then an iteration for each part and
    buffer copies the elements. Together, the parts must hold each element once; this is not checked here.

    Raises `DecompositionError`.

    >>> from gossamer_ir.script import parse_format, parse_module
    >>> module = parse_module('''
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
    >>> ell = parse_format('''
    ... @T.format
    ... def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(data, (I, J), "float32")
    ... ''')
    >>> function = decompose_function(module.functions[0], ["A"], [FormatRewriteRule("ell", ell)])
    >>> [param.name for param in function.params]
    ['y', 'm', 'n', 'data_ell', 'indices_ell', 'width_ell']
    >>> [(part.name, part.vars) for part in function.body]
    [('total_init', ('i_1',)), ('total_ell', ('i_ell', 'j_ell'))]
    """
    stored = _stored_buffers(function, buffers)
    axes = {axis.name: axis for axis in function.axes}
    shape = [axes[name].length for name in stored[0].axes]
    namer = namer_of(function)
    parts = []
    for rule in rules:
        _require_fitting(rule, rank=len(shape), count=len(stored))
        declared = format_part(rule.format, rule.name, shape=shape, stored=stored, namer=namer)
        parts.append(_Part(rule, declared, shape))
    body: list[Stmt] = []
    if converts:
        for part in parts:
            body += _conversions(part, stored, namer)
    for stmt in function.body:
        if not buffers_accessed(stmt) & set(buffers):
            body.append(stmt)
        elif isinstance(stmt, Iteration):
            body += _decomposed(stmt, stored, parts, axes, namer)
        else:
            raise DecompositionError(
                "statement",
                f"{', '.join(buffers)} is used outside of the iterations of the function.",
            )
    extended = replace(
        function,
        params=(*function.params, *(param for part in parts for param in part.declared.params)),
        axes=(*function.axes, *(axis for part in parts for axis in part.declared.axes)),
        buffers=(
            *function.buffers,
            *(buffer for part in parts for buffer in part.declared.buffers),
            *(array for part in parts for array in part.declared.index_arrays),
        ),
        body=tuple(body),
    )
    return extended if converts else _without_tensor(extended, stored)


class _Part(NamedTuple):
    rule: FormatRewriteRule
    declared: FormatPart
    shape: Sequence[Expr]


def _stored_buffers(function: Function, names: Sequence[str]) -> list[SparseBuffer]:
    found = {buffer.name: buffer for buffer in function.buffers if isinstance(buffer, SparseBuffer)}
    for name in names:
        if name not in found:
            raise DecompositionError("buffer", f"'{name}' is not a sparse buffer of the function.")
    stored = [found[name] for name in names]
    if not stored or any(buffer.axes != stored[0].axes for buffer in stored):
        raise DecompositionError(
            "axes", f"The buffers {', '.join(names) or '()'} do not share their axes."
        )
    return stored


def _require_fitting(rule: FormatRewriteRule, *, rank: int, count: int) -> None:
    described = rule.format
    results = described.buffer.axes if described.map is None else described.map.results
    if len(results) != rank:
        raise DecompositionError(
            "rank",
            f"The format of part '{rule.name}' has {len(results)} dimensions; expected {rank}.",
        )
    if 1 + len(described.more_buffers) != count:
        raise DecompositionError(
            "count",
            f"The format of part '{rule.name}' has {1 + len(described.more_buffers)} buffers of values; "
            f"expected {count}.",
        )


# --- iterations


def _decomposed(
    iteration: Iteration,
    stored: Sequence[SparseBuffer],
    parts: Sequence[_Part],
    axes: Mapping[str, Axis],
    namer: Namer,
) -> list[Stmt]:
    names = [buffer.name for buffer in stored]
    variables = _required_variables(iteration, stored)
    outer_init = bool(iteration.init) and not buffers_written(iteration.init) <= set(names)
    if outer_init and buffers_written(iteration.init) & set(names):
        raise DecompositionError(
            "init",
            f"Iteration '{iteration.name}' initializes {', '.join(names)} together with other buffers.",
        )
    result: list[Stmt] = []
    if outer_init:
        result.append(_init_iteration(iteration, axes, namer))
        iteration = replace(iteration, init=())
    for part in parts:
        _require_neutral_slots(iteration, stored, part.rule)
        result.append(_part_iteration(iteration, stored, variables, part, namer))
    return result


def _required_variables(iteration: Iteration, stored: Sequence[SparseBuffer]) -> tuple[str, ...]:
    """Return the variables over the axes of the buffers, with which all accesses must be indexed."""
    if any(isinstance(stmt, Iteration) for stmt in statements(iteration.body)):
        raise DecompositionError(
            "nested", f"Iteration '{iteration.name}' contains another iteration."
        )
    by_axis = dict(zip(all_axis_names(iteration.axes), iteration.vars, strict=True))
    names = {buffer.name for buffer in stored}
    missing = [axis for axis in stored[0].axes if axis not in by_axis]
    if missing:
        raise DecompositionError(
            "axes",
            f"Iteration '{iteration.name}' uses {', '.join(sorted(names))}, but does not iterate over the "
            f"axis '{missing[0]}'.",
        )
    variables = tuple(by_axis[axis] for axis in stored[0].axes)
    expected = tuple(index_var(name) for name in variables)
    for access in collect(ACCESSES, *iteration.init, *iteration.body):
        if access.buffer in names and access.indices != expected:
            raise DecompositionError(
                "access",
                f"Iteration '{iteration.name}' looks up elements of '{access.buffer}'; expected the element "
                "that is iterated.",
            )
    return variables


def _init_iteration(iteration: Iteration, axes: Mapping[str, Axis], namer: Namer) -> Stmt:
    """Return the init as an iteration over the spatial axes."""
    by_axis = dict(zip(all_axis_names(iteration.axes), iteration.vars, strict=True))
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    kept = [name for name, variable in by_axis.items() if kinds[variable] == "S"]
    for name in kept:
        if axes[name].parent is not None and axes[name].parent not in kept:
            raise DecompositionError(
                "init",
                f"The init of iteration '{iteration.name}' depends on axis '{name}', whose parent is "
                "reduced.",
            )
    variables = {by_axis[name]: namer.fresh(by_axis[name]) for name in kept}
    values = {old: index_var(new) for old, new in variables.items()}
    return Iteration(
        name=namer.fresh(f"{iteration.name}_init"),
        axes=tuple(OverAxis(name) for name in kept),
        kinds="S" * len(kept),
        vars=tuple(variables.values()),
        body=with_fresh_names(iteration.init, namer, values=values),
    )


def _part_iteration(
    iteration: Iteration,
    stored: Sequence[SparseBuffer],
    variables: tuple[str, ...],
    part: _Part,
    namer: Namer,
) -> Stmt:
    """Return the iteration over a part."""
    declared = part.declared
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    axes: list[IterationAxis] = []
    new_kinds: list[str] = []
    new_vars: list[str] = []
    values: dict[str, Expr] = dict(zip(variables, declared.coordinates, strict=True))
    for item in iterated_axes(iteration):
        if not set(item.vars) & set(variables):
            axes.append(item.axis)
            new_kinds += item.kinds
            for name in item.vars:
                fresh = namer.fresh(name)
                new_vars.append(fresh)
                values[name] = index_var(fresh)
        elif not set(new_vars) & set(declared.variables):
            axes += [OverAxis(name) for name in declared.buffers[0].axes]
            new_kinds += _part_kinds(declared, variables, kinds)
            new_vars += declared.variables
    renamed = dict(
        zip((buffer.name for buffer in stored), (b.name for b in declared.buffers), strict=True)
    )
    guard = _inside(part)

    def moved(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        stored_in_part = rewrite_body(body, lambda node: _moved(node, renamed, declared.variables))
        copied = with_fresh_names(stored_in_part, namer, values=values)
        return copied if guard is None else (If(guard, copied),)

    return replace(
        iteration,
        name=namer.fresh(f"{iteration.name}_{part.rule.name}"),
        axes=tuple(axes),
        kinds="".join(new_kinds),
        vars=tuple(new_vars),
        init=moved(iteration.init) if iteration.init else (),
        body=moved(iteration.body),
    )


def _part_kinds(
    declared: FormatPart, variables: Sequence[str], kinds: Mapping[str, str]
) -> list[str]:
    """Return the kind of each axis of a part: spatial if a spatial coordinate depends on it, or if it has one
    element only."""
    lengths = {axis.name: integer_value(axis.length) for axis in declared.axes}
    spatial: set[str] = set()
    for variable, coordinate in zip(variables, declared.coordinates, strict=True):
        if kinds[variable] == "S":
            spatial |= free_vars(coordinate)
    return [
        "S" if variable in spatial or lengths[name] == 1 else "R"
        for variable, name in zip(declared.variables, declared.buffers[0].axes, strict=True)
    ]


def _moved(node: Any, renamed: Mapping[str, str], variables: Sequence[str]) -> Any | None:
    if isinstance(node, ACCESSES) and node.buffer in renamed:
        indices = tuple(index_var(name) for name in variables)
        return replace(node, buffer=renamed[node.buffer], indices=indices)
    return None


def _inside(part: _Part) -> Expr | None:
    """Return the condition that a slot is an element; None if every slot is one."""
    description = part.rule.format
    sizes = logical_shape(description)
    if description.map is None or sizes is None:
        return None
    lengths = {axis.name: axis.length for axis in description.axes}
    along = dict(zip(description.map.vars, description.buffer.axes, strict=True))
    conditions = [
        condition
        for result, size, coordinate, extent in zip(
            description.map.results, sizes, part.declared.coordinates, part.shape, strict=True
        )
        # A coordinate along an axis of this length is always inside.
        if not (isinstance(result, Var) and lengths[along[result.name]] == size)
        for condition in _in_range(coordinate, extent)
    ]
    return conjunction(*conditions)


def _in_range(coordinate: Expr, extent: Expr) -> list[Expr]:
    low, high = in_range(coordinate, extent)
    return [high] if _is_nonnegative(coordinate) else [low, high]


def _is_nonnegative(coordinate: Expr) -> bool:
    """Return whether a coordinate is a sum of products of coordinates along axes, and of sizes."""
    if isinstance(coordinate, Binary) and coordinate.op in ("add", "mul"):
        return _is_nonnegative(coordinate.lhs) and _is_nonnegative(coordinate.rhs)
    return isinstance(coordinate, Var) or (integer_value(coordinate) or 0) > 0


# --- slots without an element


def _require_neutral_slots(
    iteration: Iteration, stored: Sequence[SparseBuffer], rule: FormatRewriteRule
) -> None:
    """Require that slots that fill dense axes, which hold zeros, contribute nothing."""
    if stores_only_elements(rule.format):
        return
    names = {buffer.name for buffer in stored if value_of(fill_of(buffer)) == 0}
    for stmt in statements(iteration.body):
        if not isinstance(stmt, Store):
            continue
        reduction = match_reduction(stmt)
        if reduction is None or reduction.op != "add" or not _vanishes(reduction.value, names):
            raise DecompositionError(
                "fill",
                f"The format of part '{rule.name}' fills dense axes with zeros, but iteration "
                f"'{iteration.name}' does not add multiples of the values, so that they would count.",
            )


def _vanishes(expr: Expr, zeros: Collection[str]) -> bool:
    """Return whether a value is zero where the elements of some buffers are zero and others are finite."""
    match expr:
        case Load():
            return expr.buffer in zeros
        case Binary(op="mul"):
            return _vanishes(expr.lhs, zeros) or _vanishes(expr.rhs, zeros)
        case Binary(op="add" | "sub"):
            return _vanishes(expr.lhs, zeros) and _vanishes(expr.rhs, zeros)
        case Unary(op="neg"):
            return _vanishes(expr.operand, zeros)
        case Cast():
            return _vanishes(expr.value, zeros)
    return False


# --- conversion, and what is left


def _conversions(part: _Part, stored: Sequence[SparseBuffer], namer: Namer) -> list[Stmt]:
    """Return an iteration for each buffer that copies the elements of a part."""
    result: list[Stmt] = []
    for old, new in zip(stored, part.declared.buffers, strict=True):
        variables = tuple(namer.fresh(name) for name in part.declared.variables)
        values = dict(zip(part.declared.variables, map(index_var, variables), strict=True))
        store = Store(
            new.name,
            tuple(values.values()),
            Load(old.name, part.declared.coordinates, old.dtype),
        )
        guard = _inside(part)
        body: tuple[Stmt, ...] = (store,) if guard is None else (If(guard, (store,)),)
        result.append(
            Iteration(
                name=namer.fresh(f"rewrite_{new.name}"),
                axes=tuple(OverAxis(name) for name in new.axes),
                kinds="S" * len(variables),
                vars=variables,
                body=with_fresh_names(body, namer, values=values),
                annotations=((PREPROCESS, True),),
            )
        )
    return result


def _without_tensor(function: Function, stored: Sequence[SparseBuffer]) -> Function:
    """Remove the undivided buffers, and the axes and parameters that only these used."""
    buffers = tuple(buffer for buffer in function.buffers if buffer not in stored)
    sparse = [buffer for buffer in buffers if isinstance(buffer, SparseBuffer)]
    used = {name for stmt in function.body for name in _iterated(stmt)}
    used |= {name for buffer in sparse for name in buffer.axes}
    axes = _with_ancestors(function.axes, used)
    removed = {buffer.name for buffer in stored}
    removed |= {axis.name for axis in function.axes} - {axis.name for axis in axes}
    kept = replace(
        function,
        axes=axes,
        buffers=buffers,
        relations=tuple(r for r in function.relations if not {r.left, r.right} & removed),
        facts=tuple(fact for fact in function.facts if not set(buffers_of_fact(fact)) & removed),
    )
    unused = _names_of_params(function) - _names_of_params(kept)
    return replace(kept, params=tuple(p for p in function.params if p.name not in unused))


def _iterated(stmt: Stmt) -> list[str]:
    return [
        name
        for node in walk(stmt)
        if isinstance(node, Iteration)
        for entry in node.axes
        for name in (*axis_names(entry), attached_to(entry))
        if name is not None
    ]


def _with_ancestors(axes: Sequence[Axis], names: Collection[str]) -> tuple[Axis, ...]:
    by_name = {axis.name: axis for axis in axes}
    kept: set[str] = set()
    for name in names:
        ancestor: str | None = name
        while ancestor is not None and ancestor not in kept:
            kept.add(ancestor)
            ancestor = by_name[ancestor].parent
    return tuple(axis for axis in axes if axis.name in kept)


def _names_of_params(function: Function) -> set[str]:
    """Return the names of handles and scalars that occur in a function."""
    names = {handle for axis in function.axes for handle in index_handles(axis)}
    for buffer in function.buffers:
        names |= {buffer.handle} if buffer.handle is not None else set()
        if isinstance(buffer, SparseBuffer) and buffer.offsets is not None:
            names.add(buffer.offsets)
    parts = (*function.axes, *function.buffers, *function.facts, *function.body)
    return names | {node.name for node in walk(*parts) if isinstance(node, Var)}
