"""`FunctionEmitter`: emits the nodes of a function by the tables of emitters, with their common state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Load, Module, Stmt
from gossamer_llvm.emitter.available_values import AvailableValues
from gossamer_llvm.emitter.function_info import FunctionInfo
from gossamer_llvm.emitter.ir_builder import IRBuilder
from gossamer_llvm.emitter.module_emitter import ModuleEmitter
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.emitter.var_bindings import VarBindings
from gossamer_llvm.emitter.vector_accesses import VectorAccesses

MAX_EMITTED_DEPTH = 150
"""The maximum nesting of expressions and bodies; both Python and LLVM recurse over them."""


EmitExpr: TypeAlias = Callable[["FunctionEmitter", Any], Value]
EmitStmt: TypeAlias = Callable[["FunctionEmitter", Any], None]
LowerExpr: TypeAlias = Callable[["FunctionEmitter", Any], Value | None]
LowerStmt: TypeAlias = Callable[["FunctionEmitter", Any], bool]
State = TypeVar("State")


def _nothing(_emitter: FunctionEmitter) -> None:
    """Emit nothing."""


def _emit_body(emitter: FunctionEmitter, body: tuple[Stmt, ...]) -> None:
    """Emit the body once."""
    emitter.body(body)


def _no_error(_buffer_name: str, _dtype: str) -> None:
    """Return no error."""


class FunctionForm(msgspec.Struct, frozen=True, kw_only=True):
    """The ways in which a target defines, enters and leaves a function unlike the others."""

    convention: str | None = None
    """The calling convention of LLVM, if it is not that of C."""
    attributes: str | None = None
    """The attributes of the definition; None for those that follow from what the function does."""
    begin: Callable[[FunctionEmitter], None] = _nothing
    """Emits what precedes the body."""
    body: Callable[[FunctionEmitter, tuple[Stmt, ...]], None] = _emit_body
    """Emits the body."""
    end: Callable[[FunctionEmitter], None] = _nothing
    """Emits what precedes the return."""
    library_error: Callable[[str], UnsupportedError] | None = None
    """Returns the error for a buffer that needs a function of the C library; None if the function can call
    such functions."""
    gather_error: Callable[[str, str], UnsupportedError | None] = _no_error
    """Returns the error for a gather or scatter of a buffer, with this dtype, that has no instructions."""


USUAL_FORM = FunctionForm()
"""The form of functions that are unlike no others."""


def _no_forms(_flat: Module) -> Mapping[str, FunctionForm]:
    return {}


class TargetLowering(msgspec.Struct, frozen=True, kw_only=True):
    """The constructs that a target lowers to instructions of its own: a folder of `gossamer_llvm.targets`.

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


class EmitterTables(msgspec.Struct, frozen=True):
    """The functions that emit each type of node: of all targets, and those of this one."""

    exprs: Mapping[type, EmitExpr]
    stmts: Mapping[type, EmitStmt]
    lowering: TargetLowering = TargetLowering()


class FunctionEmitter(msgspec.Struct):
    """The function being emitted."""

    module: ModuleEmitter
    tables: EmitterTables
    builder: IRBuilder
    info: FunctionInfo = FunctionInfo()
    form: FunctionForm = USUAL_FORM
    workspace: str = "%ws"
    """The operand of the workspace."""
    vars: VarBindings = msgspec.field(default_factory=VarBindings)
    buffers: dict[str, BufferAddress] = {}
    available: AvailableValues = msgspec.field(default_factory=AvailableValues)
    vectors: VectorAccesses = VectorAccesses()
    heap: list[str] = []
    """The stack slots with the addresses of memory to free."""
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
    states: dict[type, Any] = {}
    """The state that a target keeps about the function, by its type."""
    body_ends: list[Callable[[], None]] = []
    """The actions at the ends of the enclosing bodies, besides freeing memory."""

    def helper(self, signature: str) -> FunctionEmitter:
        """Return the emitter of another function of the module, which only this one calls."""
        return FunctionEmitter(self.module, self.tables, IRBuilder(signature))

    def state(self, kind: type[State]) -> State:
        """Return the record that a target keeps about this function; its fields have defaults."""
        state: State = self.states.setdefault(kind, kind())
        return state

    def expr(self, node: Expr) -> Value:
        """Emit an expression."""
        self._enter()
        lower = self.tables.lowering.exprs.get(type(node))
        value = lower(self, node) if lower is not None else None
        if value is None:
            value = self.tables.exprs[type(node)](self, node)
        self.depth -= 1
        return value

    def stmt(self, node: Stmt) -> None:
        """Emit a statement."""
        lower = self.tables.lowering.stmts.get(type(node))
        if lower is None or not lower(self, node):
            self.tables.stmts[type(node)](self, node)

    def body(self, body: tuple[Stmt, ...]) -> None:
        """Emit statements, and free the memory that they allocated at their end."""
        self._enter()
        before, ends = len(self.heap), len(self.body_ends)
        outer = self.builder.location
        with self.available.scope():
            for node in body:
                if self.module.debug is not None and self.info.subprogram is not None:
                    location = self.module.debug.location(node, self.info.subprogram)
                    # Emission makes statements that are not in the text: they belong to the one around.
                    self.builder.location = outer if location is None else location
                self.stmt(node)
        self.builder.location = outer
        # Freed at the end of the body, and again at the exit: a freed slot holds null.
        for slot in self.heap[before:]:
            self._free(slot)
        while len(self.body_ends) > ends:
            self.body_ends.pop()()
        self.depth -= 1

    def add_available(self, load: Load, value: Value) -> None:
        """Record the value of a load, if nothing writes the memory that it reads."""
        if self.info.is_unchanging(load):
            self.available.add_load(load, value)

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
        self.form.end(self)
        if self.module.target_info.is_device:
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
