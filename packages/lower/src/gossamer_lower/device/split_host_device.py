"""Splits a flat module into the entry, which a host interprets, and kernels, which it launches."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import is_handle
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Buffer,
    For,
    Function,
    If,
    Launch,
    Let,
    Module,
    ParallelFor,
    Stmt,
)
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read, buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, names_in
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.device.kernel_functions import (
    bound_kernel,
    has_grid,
    is_on_host,
    is_private,
    iteration_kernel,
    single_kernel,
)
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_support.items_by_name import items_by_name


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "pipeline_loops": "a pipelined loop allocates the stages of buffers before it",
        "lower_cross_thread_reduction": "what threads exchange is allocated before the loops over threads",
    },
)
def split_host_device(module: Module) -> Module:
    """Return a flat module whose entry only launches kernels, computes sizes and allocates global memory.

    Each outermost nest of loops that are bound to threads is a kernel, with the buffers of blocks and threads
    that it uses. A parallel loop is one with a thread for each iteration. All other statements are kernels
    of one thread.

    Raises `UnsupportedError` (`lower.split_host_device.*`): `.extent` if a number of threads is not known at
    the launch, `.host` if a loop or a condition around kernels reads an array, `.scope` if kernels share a
    buffer of a block or a thread.

    >>> from gossamer_ir.script import parse_module, print_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def scale(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.thread_binding(n, thread="blockIdx.x"):
    ...         X[i] = X[i] * 2.0
    ... ''')
    >>> print(print_module(split_host_device(flat)).partition('"float32")')[2].partition("@")[0].strip())
    T.launch("scale_i", [x, n], threads={"blockIdx.x": n})
    """
    functions = items_by_name(module.functions)
    entry = functions[module.entry]
    splitter = _Splitter(functions, entry)
    body = splitter.body(entry.body)
    return Module("flat", (replace(entry, body=body), *splitter.kernels), module.entry)


class _Splitter:
    """Splits the body of an entry, and collects the kernels."""

    # Other statements: none starts a grid of threads but these.
    def __init__(self, functions: dict[str, Function], entry: Function) -> None:
        self.kernels: list[Function] = []
        self._functions, self._entry = functions, entry
        self._namer = Namer(
            {*functions, *(name for f in functions.values() for name in names_in(f))}
        )
        self._buffers = {
            buffer.name: buffer for buffer in entry.buffers if isinstance(buffer, Buffer)
        }
        self._buffers |= items_by_name(allocations(stmts(entry.body)))
        self._written = buffers_written(entry.body)
        calls = [stmt for stmt in stmts(entry.body) if isinstance(stmt, ParallelFor | Launch)]
        self._passed = free_vars(*(arg for call in calls for arg in call.args))
        self._lets: list[Let] = []
        self._private: list[Allocate] = []

    # Other statements: `_host_stmt` returns the part of the host; threads run the rest.
    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return a body of the host. Consecutive statements without a grid are one kernel."""
        new: list[Stmt] = []
        pending: list[Stmt] = []
        for number, stmt in enumerate(body):
            host = None
            # After the last grid, a value that is read from an array has one user: the last kernel.
            if (
                not isinstance(stmt, Let)
                or is_on_host(stmt.value)
                or any(map(has_grid, body[number:]))
            ):
                host = self._host_stmt(stmt)
            if host is None:
                pending.append(stmt)
                continue
            if pending and host:
                new.append(self._add_single(pending))
                pending = []
            new += host
        return (*new, self._add_single(pending)) if pending else tuple(new)

    # Other statements: refused on the host of a grid, or run in a kernel.
    def _host_stmt(self, stmt: Stmt) -> tuple[Stmt, ...] | None:
        """Return the statement of the host for one of a kernel; None if a thread runs it."""
        match stmt:
            case Let() if is_on_host(stmt.value):
                return (stmt,)
            case Let():
                self._require_constant(stmt)
                self._lets.append(stmt)
                return ()
            case Allocate() if is_private(stmt) and stmt.buffer.name not in self._passed:
                self._private.append(stmt)
                return ()
            case Allocate():
                # A buffer that functions get by a pointer is in global memory, whatever its scope is.
                return (Allocate(replace(stmt.buffer, scope="global")),)
            case _ if not has_grid(stmt):
                return None
            case ParallelFor():
                return (self._add_iterations(stmt),)
            case Launch():
                return (self._keep_kernel(stmt),)
            case For() if stmt.thread is not None:
                return (self._add_grid(stmt),)
            case For() if stmt.kind == "serial" and is_on_host(stmt.start, stmt.extent):
                return (replace(stmt, body=self.body(stmt.body)),)
            case If() if is_on_host(stmt.condition):
                sides = (self.body(stmt.then_body), self.body(stmt.else_body))
                return (If(stmt.condition, *sides),)
        raise UnsupportedError(
            "lower.split_host_device.host",
            f"A '{type(stmt).__name__}' around loops that are bound to threads reads an array, or is not a "
            "loop over integers.",
            hint="Bind a loop around it, or make what it reads a parameter.",
        )

    def _require_constant(self, let: Let) -> None:
        """Refuse a value that each kernel would read, if the program changes it between them."""
        changed = buffers_read(let.value) & self._written
        if changed:
            raise UnsupportedError(
                "lower.split_host_device.host",
                f"'{let.var.name}' reads '{min(changed)}', which the program writes, outside of a loop that "
                "is bound to threads.",
                hint="Compute it in the loop.",
            )

    def _add_single(self, pending: list[Stmt]) -> Launch:
        name = self._namer.fresh(f"{self._entry.name}_statements")
        return self._add(*single_kernel(name, self._with_definitions(pending), self._buffers))

    def _add_grid(self, loop: For) -> Launch:
        name = self._namer.fresh(f"{self._entry.name}_{loop.var}")
        return self._add(*bound_kernel(name, self._with_definitions([loop]), self._buffers))

    def _add_iterations(self, loop: ParallelFor) -> Launch:
        name = self._namer.fresh(f"{loop.function}_threads")
        self._require_no_reads(loop)
        changed = buffers_read(loop.start, loop.extent) & self._written
        if changed:
            raise UnsupportedError(
                "lower.split_host_device.host",
                f"The range of the parallel loop '{loop.var}' reads '{min(changed)}', which is written.",
                hint="Make the number of its iterations a parameter.",
            )
        return self._add(*iteration_kernel(name, loop, self._functions[loop.function], self._namer))

    def _keep_kernel(self, node: Launch) -> Launch:
        self._require_no_reads(node)
        kernel = self._functions[node.function]
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        return node

    def _require_no_reads(self, node: ParallelFor | Launch) -> None:
        scalars = [arg for arg in node.args if not is_handle(arg)]
        names = {let.var.name for let in self._lets} | {
            allocation.buffer.name for allocation in self._private
        }
        if buffers_read(*scalars) or free_vars(*node.args) & names:
            raise UnsupportedError(
                "lower.split_host_device.host",
                f"An argument of '{node.function}' is read from an array, or is a buffer of a thread.",
                hint="Read it in the function, or use a buffer in global memory.",
            )

    def _add(self, kernel: Function, launch: Launch) -> Launch:
        self.kernels.append(kernel)
        return launch

    def _with_definitions(self, body: list[Stmt]) -> list[Stmt]:
        """Return statements after the lets and the allocations of private memory that they use."""
        used = {node.buffer.name for node in self._private} & (
            buffers_read(*body) | buffers_written(body)
        )
        allocated = [node for node in self._private if node.buffer.name in used]
        for kernel in self.kernels:
            shared = used & {buffer.name for buffer in allocations(stmts(kernel.body))}
            if shared:
                raise UnsupportedError(
                    "lower.split_host_device.scope",
                    f"Two kernels use '{min(shared)}', which is memory of a block or a thread.",
                    hint="Give it the scope 'global'.",
                )
        lets: list[Let] = []
        names = free_vars(*body)
        for let in reversed(self._lets):
            if let.var.name in names:
                lets.insert(0, let)
                names |= free_vars(let.value)
        return [*lets, *allocated, *body]
