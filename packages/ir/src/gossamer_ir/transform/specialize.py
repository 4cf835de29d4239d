"""Specializes a module: constant sizes and scalars, other dtypes of values and index storage."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import index_handles, indices_of, indptr_of, with_index_dtypes
from gossamer_ir.core.build import fold_constants
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import INDEX_STORAGE, DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Axis, Binary, Const, Expr, Function, Module, Node
from gossamer_ir.transform.retype import retype_function
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.substitute import substitute
from gossamer_support.items_by_name import items_by_name
from gossamer_support.typed_calls import typed


@typed
def specialize(
    module: Module,
    values: Mapping[str, bool | int | float],
    *,
    dtypes: Mapping[str, str] | None = None,
) -> Module:
    """Return the module with scalar parameters of the entry replaced by constants, and buffers and axes
    retyped.

    `values` maps the names of parameters, which are removed, to their values. `dtypes` maps the names of
    buffers to the dtypes of their values, and the names of axes to the storage dtypes of their indices;
    literals that are combined with them are converted. Raises `ArgumentError`: `specialize.unknown` for
    an unknown name, `specialize.dtype` for an invalid dtype or one that another operand contradicts,
    `constant.range` for a value that the dtype of the parameter cannot represent.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n + 1,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = 1.0
    ... ''')
    >>> fixed = specialize(module, {"n": 8}, dtypes={"X": "float64"})
    >>> from gossamer_ir.script import print_module
    >>> print(print_module(fixed))
    @T.prim_func
    def fill(
        x: T.handle,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(x, (9,), "float64")
        for i in T.serial(8):
            X[i] = 1.0
    <BLANKLINE>
    """
    entry = next(function for function in module.functions if function.name == module.entry)
    # Dtypes first: constants for parameters are then converted like other literals.
    changed = _retype_function(entry, dtypes or {})
    changed = _with_fixed_values(changed, values)
    functions = tuple(changed if function is entry else function for function in module.functions)
    return module if changed is entry else replace(module, functions=functions)


def _with_fixed_values(function: Function, values: Mapping[str, bool | int | float]) -> Function:
    if not values:
        return function
    scalars = {param.name: param.dtype for param in function.params if param.dtype != "handle"}
    for name in values:
        if name not in scalars:
            raise _unknown_name_error(name, "scalar parameter", scalars)
    consts: dict[str, Expr] = {
        name: constant(value, scalars[name]) for name, value in values.items()
    }
    kept = tuple(param for param in function.params if param.name not in values)
    # Folded at once, since sizes with constants decide which loops can be unrolled and vectorized.
    fixed: Function = rewrite(substitute(replace(function, params=kept), consts), _fold)
    return fixed


def _fold(node: Node) -> Expr | None:
    """Return the result of an int64 operation on two constants."""
    if not isinstance(node, Binary) or not _is_index(node.lhs) or not _is_index(node.rhs):
        return None
    return fold_constants(node.op, node.lhs, node.rhs)


def _is_index(node: Expr) -> bool:
    return isinstance(node, Const) and node.dtype == "int64"


def _retype_function(function: Function, dtypes: Mapping[str, str]) -> Function:
    if not dtypes:
        return function
    axes = items_by_name(function.axes)
    buffers = items_by_name(all_buffers(function))
    for name in dtypes:
        if name not in axes and name not in buffers:
            raise _unknown_name_error(name, "buffer or axis", {**buffers, **axes})
    storage = _index_storage(axes, dtypes)
    by_buffer = {name: _value_dtype(dtype) for name, dtype in dtypes.items() if name in buffers}
    # A buffer over the array of a retyped axis must agree with it, unless its own dtype is given.
    for declared in buffers.values():
        if declared.handle in storage:
            by_buffer.setdefault(declared.name, storage[declared.handle])
    new_axes = tuple(_axis(axis, dtypes) for axis in function.axes)
    return retype_function(replace(function, axes=new_axes), by_buffer)


def _value_dtype(dtype: str) -> str:
    if DType.parse(dtype).is_vector or dtype == "handle":
        raise ArgumentError(
            "specialize.dtype",
            f"A buffer cannot hold values of dtype '{dtype}'.",
            hint="Expected a scalar dtype of numbers or bools.",
        )
    return dtype


def _index_storage(by_name: Mapping[str, Axis], dtypes: Mapping[str, str]) -> dict[str, str]:
    """Return the handles of the index arrays that are retyped, with their new dtypes."""
    storage: dict[str, str] = {}
    for name in dtypes.keys() & by_name.keys():
        if dtypes[name] not in INDEX_STORAGE:
            raise ArgumentError(
                "specialize.dtype",
                f"The indices of axis '{name}' cannot be stored as '{dtypes[name]}'.",
                hint=f"Expected one of {', '.join(INDEX_STORAGE)}.",
            )
        retyped = with_index_dtypes(by_name[name], indptr=dtypes[name], indices=dtypes[name])
        arrays = (indptr_of(retyped), indices_of(retyped))
        storage |= {array.handle: array.dtype for array in arrays if array is not None}
    return storage


def _axis(axis: Axis, dtypes: Mapping[str, str]) -> Axis:
    dtype = dtypes.get(axis.name)
    if dtype is None:
        return axis
    if not index_handles(axis):
        raise ArgumentError(
            "specialize.dtype",
            f"Axis '{axis.name}' is dense and fixed, so it stores no indices.",
            hint="Give dtypes for compressed or varied axes only.",
        )
    return with_index_dtypes(axis, indptr=dtype, indices=dtype)


def _unknown_name_error(name: str, what: str, available: Mapping[str, object]) -> ArgumentError:
    return ArgumentError(
        "specialize.unknown",
        f"There is no {what} '{name}'.",
        hint=f"Available: {', '.join(map(repr, available)) or 'none'}.",
    )
