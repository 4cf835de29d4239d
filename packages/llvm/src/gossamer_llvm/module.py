"""A flat module as the text of an LLVM module."""

from __future__ import annotations

from gossamer_ir.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Buffer,
    For,
    Function,
    Guard,
    Launch,
    Module,
    ParallelFor,
    Param,
    Store,
    Var,
    While,
)
from gossamer_ir.walk import walk
from gossamer_llvm.abi import ENTRY_SYMBOL, Abi
from gossamer_llvm.frame import Frame, Place, Unit, Value
from gossamer_llvm.tables import EXPRESSIONS, STATEMENTS
from gossamer_llvm.text import COLD, HOT, FunctionText
from gossamer_llvm.types import value_type


def emit(flat: Module, *, abi: Abi) -> str:
    """The LLVM IR of a verified flat module: one exported function `gossamer_kernel`.

    Its parameters are those of the entry in order (a handle is a pointer, an integer or bool scalar
    an i64, a float itself), then a pointer to the workspace; it returns a status. `UnsupportedError`
    (`llvm.<construct>`) names what is not lowered. The text holds no name of the module.

    >>> from gossamer_ir.build import index_var
    >>> from gossamer_ir.nodes import For, While, Buffer, Function, Module, Param, Store
    >>> from gossamer_ir.build import ZERO, zero_of
    >>> x = Buffer("X", (index_var("n"),), "float32", handle="x")
    >>> params = (Param("x", "handle"), Param("n", "int64"))
    >>> clear = Function("clear", params, (Store("X", (ZERO,), zero_of("float32")),), buffers=(x,))
    >>> text = emit(Module("flat", (clear,), "clear"), abi=Abi("x86_64-unknown-linux-gnu"))
    >>> "define i64 @gossamer_kernel(ptr noalias nocapture %p0, i64 %p1, ptr %ws)" in text
    True
    """
    if flat.stage != "flat":
        raise UnsupportedError(
            f"llvm.stage.{flat.stage}",
            f"A module of the stage {flat.stage} is not lowered to LLVM.",
        )
    unit = _unit(flat, abi)
    for function in flat.functions:
        _emit_function(unit, function, is_entry=function.name == flat.entry)
    return _render(unit)


def guarded_buffers(flat: Module) -> tuple[str, ...]:
    """The names that `failed_buffer` of the workspace counts."""
    found = (node.buffer for node in walk(flat) if isinstance(node, Guard))
    return tuple(dict.fromkeys(found))


def _unit(flat: Module, abi: Abi) -> Unit:
    symbols = {function.name: f"f{number}" for number, function in enumerate(flat.functions)}
    symbols[flat.entry] = ENTRY_SYMBOL
    functions = {function.name: function for function in flat.functions}
    return Unit(abi, EXPRESSIONS, STATEMENTS, functions, symbols, guarded_buffers(flat))


def _emit_function(unit: Unit, function: Function, *, is_entry: bool) -> None:
    calls = [node for node in walk(function) if isinstance(node, ParallelFor | Launch)]
    passed = [arg.name for call in calls for arg in call.args if isinstance(arg, Var)]
    written = {node.buffer for node in walk(function) if isinstance(node, Store)}
    buffers = [found for found in function.buffers if isinstance(found, Buffer)]
    changed = {found.handle for found in buffers if found.name in written}
    may_alias = function.name in _called_with_aliases(unit)
    parameters = []
    for number, param in enumerate(function.params):
        notes = [] if may_alias else ["noalias"]
        if param.name not in passed:
            notes += ["nocapture"] if param.name in changed else ["nocapture", "readonly"]
        parameters.append(_parameter(unit, param, number, notes, is_entry=is_entry))
    linkage = "" if is_entry else "internal "
    name = unit.symbols[function.name]
    attributes = COLD if is_entry and _only_calls(function) else HOT
    signature = f"{linkage}i64 @{name}({', '.join([*parameters, 'ptr %ws'])}) {attributes}"
    frame = Frame(unit, FunctionText(signature), shared=frozenset(passed), is_entry=is_entry)
    frame.open()
    _bind(frame, function, buffers)
    frame.body(function.body)
    frame.close()


def _only_calls(function: Function) -> bool:
    return not any(isinstance(node, For | While | Store) for node in walk(function))


def _called_with_aliases(unit: Unit) -> set[str]:
    """The functions that some call gives one pointer twice."""
    found = set()
    for function in unit.functions.values():
        for node in walk(function):
            if isinstance(node, ParallelFor | Launch):
                names = [arg.name for arg in node.args if isinstance(arg, Var)]
                if len(set(names)) < len(names):
                    found.add(node.function)
    return found


def _parameter(unit: Unit, param: Param, number: int, notes: list[str], *, is_entry: bool) -> str:
    unit.require_dtype(param.dtype)
    if param.dtype == "handle":
        return " ".join(["ptr", *notes, f"%p{number}"])
    is_widened = is_entry and not DType.parse(param.dtype).is_float
    return f"{'i64' if is_widened else value_type(param.dtype)} %p{number}"


def _bind(frame: Frame, function: Function, buffers: list[Buffer]) -> None:
    for number, param in enumerate(function.params):
        value = Value(f"%p{number}", param.dtype)
        frame.values[param.name] = _narrow(frame, value) if frame.is_entry else value
    for buffer in buffers:
        if buffer.handle is not None:
            frame.buffers[buffer.name] = Place(buffer, frame.values[buffer.handle].text)


def _narrow(frame: Frame, value: Value) -> Value:
    """Integers and bools arrive as 64 bits."""
    kind = DType.parse(value.dtype)
    if kind.kind == "bool":
        return Value(frame.text.value(f"icmp ne i64 {value.text}, 0"), value.dtype)
    if kind.is_integer and kind.bits < 64:
        return Value(frame.text.value(f"trunc i64 {value.text} to {value.type}"), value.dtype)
    return value


def _render(unit: Unit) -> str:
    attributes = " ".join(["nounwind", *unit.abi.attributes])
    metadata = [f"!{number} = {text}" for number, text in enumerate(unit.metadata)]
    head = [f'target triple = "{unit.abi.triple}"']
    if unit.abi.data_layout:
        head.insert(0, f'target datalayout = "{unit.abi.data_layout}"')
    head += [f"%t{number} = type {text}" for number, text in enumerate(unit.types, 1)]
    parts = [*head, "", *unit.definitions, *unit.declarations.values(), ""]
    groups = [
        f"attributes {HOT} = {{ {attributes} }}",
        f"attributes {COLD} = {{ noinline optnone {attributes} }}",
    ]
    return "\n".join([*parts, *groups, *metadata, ""])
