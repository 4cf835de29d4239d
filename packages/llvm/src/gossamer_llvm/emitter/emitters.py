"""The state of code generation: `ModuleEmitter`, and `FunctionEmitter` for the current function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis
from gossamer_ir.arith.affine import Affine
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.facts.fact_index import FactIndex
from gossamer_ir.nodes import Buffer, Compare, Expr, Load, Module, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_llvm.abi import LANE_COUNTS, Abi
from gossamer_llvm.emitter.debug_lines import DebugLines
from gossamer_llvm.emitter.ir_builder import IRBuilder
from gossamer_llvm.emitter.types import value_type

MAX_EMITTED_DEPTH = 150
"""The maximum nesting of expressions and bodies; both Python and LLVM recurse over them."""


class Value(msgspec.Struct, frozen=True, gc=False):
    """An operand (a name or a constant) and its dtype."""

    text: str
    dtype: str

    @property
    def type(self) -> str:
        return value_type(self.dtype)

    @property
    def typed(self) -> str:
        """`TYPE OPERAND`."""
        return f"{value_type(self.dtype)} {self.text}"


class BufferAddress(msgspec.Struct, frozen=True, gc=False):
    """A buffer and its address. `private_elements` is the number of elements reserved for it in stack memory
    that no other function accesses; otherwise 0. If `is_scalable`, there are as many for each unit of
    vscale."""

    buffer: Buffer
    address: str
    private_elements: int = 0
    is_scalable: bool = False


EmitExpr: TypeAlias = Callable[["FunctionEmitter", Any], Value]
EmitStmt: TypeAlias = Callable[["FunctionEmitter", Any], None]
LowerExpr: TypeAlias = Callable[["FunctionEmitter", Any], Value | None]
LowerStmt: TypeAlias = Callable[["FunctionEmitter", Any], bool]
State = TypeVar("State")


def _nothing(_emitter: FunctionEmitter) -> None:
    """Emit nothing."""


def _no_error(_buffer_name: str, _dtype: str) -> None:
    """Return no error."""


class FunctionForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a target defines, enters and leaves a function in another way than the others."""

    convention: str | None = None
    """The calling convention of LLVM, if it is not that of C."""
    attributes: str
    """The attributes of the definition."""
    begin: Callable[[FunctionEmitter], None] = _nothing
    """Emits what precedes the body."""
    end: Callable[[FunctionEmitter], None] = _nothing
    """Emits what precedes the return."""
    library_error: Callable[[str], UnsupportedError] | None = None
    """Returns the error for a buffer that needs a function of the C library; None if the function can call
    such functions."""
    gather_error: Callable[[str, str], UnsupportedError | None] = _no_error
    """Returns the error for a gather or scatter of a buffer, with this dtype, that has no instructions."""


def _no_forms(_flat: Module) -> Mapping[str, FunctionForm]:
    return {}


class TargetLowering(msgspec.Struct, frozen=True, kw_only=True):
    """What a target lowers to instructions of its own: a folder of `gossamer_llvm.targets`.

    The functions are tried before those of the table of emitters, which emit nodes of these types in the same
    way on all targets.

    >>> from gossamer_ir.nodes import Barrier
    >>> def emit_barrier(emitter, node):
    ...     emitter.call_void("llvm.amdgcn.s.barrier", "")
    ...     return True
    >>> lowering = TargetLowering(stmts={Barrier: emit_barrier})
    """

    exprs: Mapping[type, LowerExpr] = {}
    """Emit an expression, and return its value; None, without emitting anything, for other expressions."""
    stmts: Mapping[type, LowerStmt] = {}
    """Emit a statement, and return True; False, without emitting anything, for other statements."""
    forms: Callable[[Module], Mapping[str, FunctionForm]] = _no_forms
    """Returns the functions of a module that have another form, by their names."""


class ModuleEmitter(msgspec.Struct):
    """The module being emitted."""

    abi: Abi
    exprs: Mapping[type, EmitExpr]
    stmts: Mapping[type, EmitStmt]
    symbols: Mapping[str, str]
    """The numbered names of its functions."""
    guarded: tuple[str, ...]
    """The buffers that guards name."""
    types: list[str] = []
    declarations: dict[str, str] = {}
    """The declaration of each external function."""
    definitions: list[str] = []
    metadata: list[str] = []
    debug: DebugLines | None = None
    """The lines of its text, if instructions are to name them."""
    lowering: TargetLowering = TargetLowering()
    checked_dtypes: set[str] = msgspec.field(default_factory=set)
    """The dtypes that LLVM accepts, of those that were met."""
    helpers: int = 0
    """The number of helper functions so far."""

    def require_dtype(self, dtype_name: str) -> None:
        """Raise an error (`llvm.lanes`, `llvm.scalable`) for a dtype that must not be passed to LLVM: it
        aborts the process for some lane counts."""
        if dtype_name in self.checked_dtypes:
            return
        dtype = DType.parse(dtype_name)
        if dtype.scalable:
            self.require_scalable(f"such as '{dtype_name}'")
        if dtype.is_vector and dtype.lanes not in LANE_COUNTS:
            expected = ", ".join(map(str, LANE_COUNTS))
            raise UnsupportedError(
                "llvm.lanes",
                f"'{dtype_name}' has {dtype.lanes} lanes; expected one of {expected}.",
            )
        self.checked_dtypes.add(dtype_name)

    def require_scalable(self, what: str) -> None:
        """Raise `UnsupportedError` (`llvm.scalable`) if the target has no scalable vectors."""
        if not self.abi.scalable:
            raise UnsupportedError("llvm.scalable", f"The target has no scalable vectors, {what}.")

    def declare(self, result: str, function: str, arguments: str) -> None:
        """Declare an external function once; arguments as `TYPE X, ...`."""
        if function not in self.declarations:
            types = ", ".join(_types_of_arguments(arguments))
            self.declarations[function] = f"declare {result} @{function}({types})"

    def new_symbol(self) -> str:
        """Return a fresh name for a helper function."""
        self.helpers += 1
        return f"h{self.helpers}"

    def new_type(self, text: str) -> str:
        """Name a structure and return the name."""
        self.types.append(text)
        return f"%t{len(self.types)}"

    def new_metadata(self, text: str) -> str:
        """Add a metadata node and return its name; equal nodes that are not distinct are one."""
        if text in self.metadata:
            return f"!{self.metadata.index(text)}"
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"


class FunctionEmitter(msgspec.Struct):
    """The function being emitted."""

    module: ModuleEmitter
    builder: IRBuilder
    workspace: str = "%ws"
    """The operand of the workspace."""
    overflow: OverflowAnalysis | None = None
    """Bounds of its integers."""
    values: dict[str, Value] = {}
    """The operands of its variables."""
    loaded: set[str] = msgspec.field(default_factory=set)
    """The variables of lets that are read from memory."""
    depths: dict[str, int] = {}
    """The number of loops in which a variable varies."""
    masks: dict[Compare, Value] = {}
    """The masks of the loops around that run as long as their mask has an active lane."""
    buffers: dict[str, BufferAddress] = {}
    heap: list[str] = []
    """The stack slots with the addresses of memory to free."""
    shared: frozenset[str] = frozenset()
    """The buffers that are passed to functions, which may change their elements at any time."""
    unchanging: frozenset[str] = frozenset()
    """The buffers that nothing writes while the function runs."""
    facts: FactIndex = FactIndex(())
    """The facts about their elements."""
    available: list[dict[Load, Value]] = msgspec.field(default_factory=lambda: [{}])
    """The available loads: their values, in a table for each enclosing scope."""
    positions: list[dict[Affine, Value]] = msgspec.field(default_factory=lambda: [{}])
    """Where loops over groups of vectors ended, by the form of the position, in such tables, too."""
    is_entry: bool = False
    status: str = ""
    """The stack slot of the status."""
    exit: str = ""
    """The block in which the function returns."""
    depth: int = 0
    """The nesting of the expressions and bodies that are being emitted."""
    stack_bytes: int = 0
    """The size of its buffers on the stack."""
    has_nontemporal_stores: bool = False
    """True if it needs a fence at its end."""
    symbol: str | None = None
    """The name of the function in LLVM; None if nothing asks for it."""
    subprogram: str | None = None
    """The metadata of the function, if instructions name lines."""
    form: FunctionForm | None = None
    """The form of the function, if it is not the usual one."""
    states: dict[type, Any] = {}
    """What a target keeps about the function, by its type."""
    body_ends: list[Callable[[], None]] = []
    """What happens at the ends of the enclosing bodies, besides freeing memory."""

    def state(self, kind: type[State]) -> State:
        """Return what a target keeps about this function, a record without required fields."""
        state: State = self.states.setdefault(kind, kind())
        return state

    def depth_of(self, *nodes: Expr) -> int:
        """Return the number of loops around the innermost variable of expressions."""
        return max((self.depths.get(name, 0) for name in free_vars(*nodes)), default=0)

    def expr(self, node: Expr) -> Value:
        """Emit an expression."""
        self._enter()
        lower = self.module.lowering.exprs.get(type(node))
        value = lower(self, node) if lower is not None else None
        if value is None:
            value = self.module.exprs[type(node)](self, node)
        self.depth -= 1
        return value

    def stmt(self, node: Stmt) -> None:
        """Emit a statement."""
        lower = self.module.lowering.stmts.get(type(node))
        if lower is None or not lower(self, node):
            self.module.stmts[type(node)](self, node)

    def body(self, body: tuple[Stmt, ...]) -> None:
        """Emit statements, and free at their end what they allocated."""
        self._enter()
        before, ends = len(self.heap), len(self.body_ends)
        outer = self.builder.location
        with self.scope():
            for node in body:
                if self.module.debug is not None and self.subprogram is not None:
                    at = self.module.debug.location(node, self.subprogram)
                    # Emission makes statements that are not in the text: they belong to the one around.
                    self.builder.location = outer if at is None else at
                self.stmt(node)
        self.builder.location = outer
        # Freed at the end of the body, and again at the exit: a freed slot holds null.
        for slot in self.heap[before:]:
            self._free(slot)
        while len(self.body_ends) > ends:
            self.body_ends.pop()()
        self.depth -= 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: loads inside do not dominate the code after it, so they are not available there."""
        self.available.append({})
        self.positions.append({})
        yield
        self.available.pop()
        self.positions.pop()

    def available_load(self, load: Load) -> Value | None:
        """Return the value of an equal load that dominates this point; None if there is none."""
        for scope in self.available:
            value = scope.get(load)
            if value is not None:
                return value
        return None

    def position(self, form: Affine) -> Value | None:
        """Return the value of a position where a loop ended that dominates this point; None if there is
        none."""
        for scope in self.positions:
            if form in scope:
                return scope[form]
        return None

    def add_available(self, load: Load, value: Value) -> None:
        """Record the value of a load, if nothing writes the memory that it reads."""
        # Also the indices: an index array that is written may select another element next time.
        if load.buffer in self.unchanging and all(
            node.buffer in self.unchanging and node.predicate is None
            for node in collect(Load, load)
        ):
            self.available[-1][load] = value

    def fail(self, status: str) -> None:
        """End the block with a jump to the exit, where the function returns the status."""
        self.builder.line(f"store i64 {status}, ptr {self.status}, align 8")
        self.builder.jump(self.exit)

    def stop_if(self, condition: str, status: str) -> None:
        """Make the function return the status if the condition holds."""
        bad, good = self.builder.new_block(), self.builder.new_block()
        self.builder.branch(condition, bad, good)
        self.builder.begin(bad)
        self.fail(status)
        self.builder.begin(good)

    def call(self, result: str, function: str, arguments: str, *, flags: str = "") -> str:
        """Call an intrinsic or a library function, and declare it; arguments are `TYPE X, ...`."""
        self.module.declare(result, function, arguments)
        return self.builder.value(f"call {flags}{result} @{function}({arguments})")

    def call_in_place(self, result: str, function: str, arguments: str) -> str:
        """Call an intrinsic of a target that reads or changes more than its operands, and declare it."""
        self.module.declare(result, function, arguments)
        return self.builder.value_in_place(f"call {result} @{function}({arguments})")

    def call_void(self, function: str, arguments: str) -> None:
        """Call a function that returns nothing, and declare it."""
        self.module.declare("void", function, arguments)
        self.builder.line(f"call void @{function}({arguments})")

    def open(self) -> None:
        """Start the body, with the slot for the status and the common exit."""
        self.status = self.builder.alloca("i64", align=8)
        self.builder.at_entry(f"store i64 0, ptr {self.status}, align 8")
        self.exit = self.builder.new_block()

    def close(self) -> None:
        """End the body with the common exit."""
        self.builder.fall_into(self.exit)
        # Such stores are not ordered with others: without a fence, another
        # thread might see the end of the kernel before its results.
        if self.has_nontemporal_stores:
            self.builder.line("fence seq_cst")
        for slot in self.heap:
            self._free(slot)
        if self.form is not None:
            self.form.end(self)
        if self.module.abi.is_device:
            self.builder.line("ret void")
        else:
            status = self.builder.value(f"load i64, ptr {self.status}, align 8")
            self.builder.line(f"ret i64 {status}")
        self.module.definitions.append(self.builder.render())

    def _free(self, slot: str) -> None:
        address = self.builder.value(f"load ptr, ptr {slot}, align 8")
        self.call_void("free", f"ptr {address}")
        # The exit frees all slots, so a slot must not keep an address that was freed.
        self.builder.line(f"store ptr null, ptr {slot}, align 8")

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_EMITTED_DEPTH:
            raise UnsupportedError(
                "llvm.depth", f"The function is nested deeper than {MAX_EMITTED_DEPTH} levels."
            )


def _types_of_arguments(arguments: str) -> list[str]:
    """Return the types of `TYPE X, TYPE Y`, in which vector types and constants may contain commas."""
    types: list[str] = []
    depth, start = 0, 0
    for number, mark in enumerate(f"{arguments}," if arguments else ""):
        depth += (mark in "<(") - (mark in ">)")
        if mark == "," and depth == 0:
            item = arguments[start:number].strip()
            types.append(_type_of(item))
            start = number + 1
    return types


def _type_of(argument: str) -> str:
    if argument[0] == "<":
        return argument[: argument.index(">") + 1]
    type_, following = argument.split(" ")[:2]
    return f"{type_} {following}" if following.startswith("addrspace(") else type_
