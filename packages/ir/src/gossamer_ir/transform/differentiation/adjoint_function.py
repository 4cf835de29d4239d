"""`adjoint_function`: the program that computes the gradients of the arguments of another one."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Function, Module, Stmt
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.transform.decomposition.remove_tensor import without_tensor
from gossamer_ir.transform.differentiation.active_buffers import active_buffers
from gossamer_ir.transform.differentiation.buffer_versions import with_versions
from gossamer_ir.transform.differentiation.reverse_sweep import ReverseSweep
from gossamer_ir.transform.differentiation.store_sites import store_sites
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import Namer
from gossamer_support.message_texts import in_quotes
from gossamer_support.typed_calls import typed


def adjoint_function(
    function: Function, *, wrt: Sequence[str] = (), outputs: Sequence[str] = ()
) -> Function:
    """Return the function that computes the gradients of the buffers `wrt` from those of `outputs`.

    By default, these are all buffers of floats that the function only reads, and all that it writes. For a
    buffer `X` of handle `x`, the gradient is the buffer `X_grad` of handle `x_grad`, over the same axes and
    of the same dtype; so the gradient of a sparse buffer has its pattern. The new handles come after the old
    ones. Gradients of `wrt` must hold zeros before a call. If a derivative depends on results (as that of a
    maximum), they are arguments, too; other values are computed again. Parameters that are not needed are
    removed.

    Where several elements are the maximum or minimum of a reduction, they share its gradient evenly, and so
    do equal operands of `max` and `min`.

    Raises `ArgumentError` (`adjoint.buffer`) for names of other things, and `UnsupportedError` for a
    program whose adjoint is not defined: see `store_sites`, `with_versions` and `contributions`, and
    `adjoint.reduction` for a reduction by another reducer than a sum, a minimum or a maximum. The kernel
    reports an element that is looked up, but not stored: its gradient has no place.

    >>> from gossamer_ir.nodes import Module
    >>> from gossamer_ir.script import parse_module, print_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def product(
    ...     a: T.handle, x: T.handle, y: T.handle, p: T.handle, c: T.handle, m: T.int64, n: T.int64
    ... ) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_varied(I, n, (p, c), "int32")
    ...     K = T.sp.dense_fixed(n)
    ...     A = T.sp.match_buffer(a, (I, J), "float32")
    ...     X = T.sp.match_buffer(x, (K,), "float32")
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I, J], "SR", "product") as [i, j]:
    ...         with T.init():
    ...             Y[i] = 0.0
    ...         Y[i] = Y[i] + A[i, j] * X[j]
    ... ''')
    >>> adjoint = adjoint_function(module.functions[0], wrt=["A"])
    >>> [param.name for param in adjoint.params]
    ['x', 'p', 'c', 'y_grad', 'a_grad', 'm', 'n']
    >>> print(print_module(Module("coordinate", (adjoint,), adjoint.name)).split("as ")[-1])
    [i, j]:
            A_grad[i, j] = Y_grad[i] * X[j]
    <BLANKLINE>
    """
    sites = store_sites(function)
    written = {site.buffer for site in sites}
    wanted, results = _gradient_inputs(function, written, wrt), _results(function, written, outputs)
    namer = _namer_of_declarations(function)
    versioned = with_versions(function, sites, namer)
    active = active_buffers(versioned.sites, versioned.buffers, wanted, results)
    sweep = ReverseSweep(function, versioned.buffers, active, namer)
    sweep.declare_gradients((*results, *wanted))
    body = sweep.reversed_body(versioned.sites, results)
    return _assemble_adjoint(
        function, sweep, (*sweep.recompute_scratch(versioned.sites, body), *body)
    )


@typed
def adjoint_module(
    module: Module, *, wrt: Sequence[str] = (), outputs: Sequence[str] = ()
) -> Module:
    """Return the adjoint of a verified module with one function, as a module: see `adjoint_function`.

    Raises, besides its errors, `ArgumentError` (`adjoint.stage`) for a module that is not of the coordinate
    stage.
    """
    if module.stage != "coordinate":
        raise ArgumentError(
            "adjoint.stage",
            f"The module is of the stage '{module.stage}'; expected 'coordinate'.",
            hint="Take the adjoint of the program before it is lowered.",
        )
    entry = next(function for function in module.functions if function.name == module.entry)
    adjoint = adjoint_function(entry, wrt=wrt, outputs=outputs)
    return Module(module.stage, (adjoint,), adjoint.name)


def _gradient_inputs(function: Function, written: Set[str], wrt: Sequence[str]) -> tuple[str, ...]:
    inputs = [name for name in _passed_floats(function) if name not in written]
    return _check_names("wrt", wrt, inputs, "a buffer of floats that the program only reads")


def _results(function: Function, written: Set[str], outputs: Sequence[str]) -> tuple[str, ...]:
    results = [name for name in _passed_floats(function) if name in written]
    return _check_names("outputs", outputs, results, "a buffer of floats that the program writes")


def _passed_floats(function: Function) -> list[str]:
    return [
        buffer.name
        for buffer in function.buffers
        if buffer.handle is not None and DType.parse(buffer.dtype).is_float
    ]


def _check_names(
    option: str, names: Sequence[str], allowed: Sequence[str], what: str
) -> tuple[str, ...]:
    """Return the names, all that are allowed if there are none."""
    for name in names:
        if name not in allowed:
            raise ArgumentError(
                "adjoint.buffer",
                f"'{name}' in {option}= is not {what}.",
                hint=f"There are {in_quotes(allowed)}." if allowed else "",
            )
    return tuple(dict.fromkeys(names)) or tuple(allowed)


def _namer_of_declarations(function: Function) -> Namer:
    """Return a namer of which variables and labels are free: the body is replaced."""
    declared = (*function.params, *function.axes, *function.buffers)
    return Namer([function.name, *[buffer.name for buffer in declared]])


def _assemble_adjoint(function: Function, sweep: ReverseSweep, body: tuple[Stmt, ...]) -> Function:
    """Return the function with the body of the adjoint and what that uses."""
    name = f"{function.name}_adjoint"
    handles = [param for param in function.params if param.dtype == "handle"]
    scalars = [param for param in function.params if param.dtype != "handle"]
    annotations = tuple(
        (key, name if key == "global_symbol" else value) for key, value in function.annotations
    )
    complete = replace(
        function,
        name=name,
        params=(*handles, *sweep.params, *scalars),
        buffers=tuple(sweep.buffers.values()),
        annotations=annotations,
    )
    namer = _namer_of_declarations(complete)
    # A loop around several stores became one around each of them.
    named = tuple(renamed for stmt in body for renamed in with_fresh_names((stmt,), namer))
    used = buffers_accessed(*body)
    passed = {param.name for param in sweep.params}
    unused = [
        buffer
        for buffer in complete.buffers
        if buffer.name not in used and buffer.handle not in passed
    ]
    return without_tensor(replace(complete, body=named), unused)
