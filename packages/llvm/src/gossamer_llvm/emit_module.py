"""Emits a flat module as the text of an LLVM module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.statement_kinds import SYNCHRONIZING_STMTS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.interchange.kernel_abi import KERNEL_SYMBOL
from gossamer_ir.nodes import Buffer, Function, Module, Param, Store
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_llvm.dispatch import EXPR_EMITTERS, STMT_EMITTERS
from gossamer_llvm.emitter.function_emitter import (
    USUAL_FORM,
    EmitterTables,
    FunctionEmitter,
    FunctionForm,
    TargetLowering,
)
from gossamer_llvm.emitter.function_info import FunctionInfo
from gossamer_llvm.emitter.function_summary import FunctionSummary, summarize
from gossamer_llvm.emitter.ir_builder import COLD, HOT, IRBuilder
from gossamer_llvm.emitter.module_emitter import ModuleEmitter
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.emitter.types import in_llvm_units, value_type
from gossamer_llvm.memory.filled_buffers import filled_buffers
from gossamer_llvm.memory.unread_lanes import stores_of_unread_lanes
from gossamer_llvm.target_info import CODE_ALIGNMENT, TargetInfo
from gossamer_support.typed_calls import typed


@typed
def emit_llvm_ir(
    flat: Module,
    *,
    target_info: TargetInfo,
    lowering: TargetLowering | None = None,
    script: str | None = None,
) -> str:
    """Return the LLVM IR of a verified flat module, with one exported function `gossamer_kernel`.

    On a device, each function is a kernel: `gossamer_kernel`, or `gossamer_kernel_<number>` for all but the
    entry. It returns nothing; a failed bounds check only sets `failed_buffer` of the workspace.
    Its parameters are those of the entry in order (a handle is a pointer, an integer or bool scalar is an
    i64, a float keeps its type), then a pointer to the workspace; it returns a status. Raises
    `UnsupportedError` (`llvm.<construct>`) for constructs that cannot be lowered. The text contains no names
    of the module. `lowering` has the instructions that only this target has, if there are any. `script` is
    the name of a file with its text (`print_module`), if debug information is to name the lines of that.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import For, While, Buffer, Function, Module, Param, Store
    >>> from gossamer_ir.core.build import ZERO, zero_of
    >>> x = Buffer("X", (index_var("n"),), "float32", handle="x")
    >>> params = (Param("x", "handle"), Param("n", "int64"))
    >>> clear = Function("clear", params, (Store("X", (ZERO,), zero_of("float32")),), buffers=(x,))
    >>> target = TargetInfo("x86_64-unknown-linux-gnu")
    >>> text = emit_llvm_ir(Module("flat", (clear,), "clear"), target_info=target)
    >>> "define i64 @gossamer_kernel(ptr noalias nocapture %p0, i64 %p1, ptr %ws)" in text
    True
    """
    if flat.stage != "flat":
        raise UnsupportedError(
            f"llvm.stage.{flat.stage}",
            f"A module of the {flat.stage} stage cannot be lowered to LLVM; expected the flat stage.",
        )
    summaries = {function.name: summarize(function) for function in flat.functions}
    module = _new_module_emitter(flat, target_info, summaries)
    tables = EmitterTables(EXPR_EMITTERS, STMT_EMITTERS, lowering or TargetLowering())
    if script is not None:
        # Imported late: few modules are compiled for a debugger.
        from gossamer_llvm.emitter.debug_lines import debug_lines

        module.debug = debug_lines(flat, script, add=module.new_metadata)
    forms = tables.lowering.forms(flat)
    # Two pointers of a function may be one array if a caller passes it twice; then nothing is `noalias`.
    aliasing = frozenset[str]().union(*(summary.aliasing for summary in summaries.values()))
    for function in flat.functions:
        emitter = _new_function_emitter(
            module,
            tables,
            function,
            summaries[function.name],
            aliasing=aliasing,
            is_entry=target_info.is_device or function.name == flat.entry,
            form=forms.get(function.name, USUAL_FORM),
        )
        _emit_function(emitter, function)
    return _module_text(module)


def _new_function_emitter(
    module: ModuleEmitter,
    tables: EmitterTables,
    function: Function,
    summary: FunctionSummary,
    *,
    aliasing: frozenset[str],
    is_entry: bool,
    form: FunctionForm,
) -> FunctionEmitter:
    """Return the emitter of a function, with the signature and the attributes of its definition."""
    signature = _signature_text(module, function, summary, aliasing, is_entry=is_entry)
    if form.convention is not None:
        signature = f"{form.convention} {signature}"
    attributes = form.attributes
    if attributes is None:
        attributes = _attributes(summary, is_entry=is_entry)
    subprogram = None
    if module.debug is not None:
        subprogram = module.debug.subprogram(function, module.symbols[function.name])
        attributes += f" !dbg {subprogram}"
    info = FunctionInfo(
        symbol=module.symbols[function.name],
        subprogram=subprogram,
        is_entry=is_entry,
        overflow=overflow_of(function),
        facts=fact_index(function.facts),
        shared=summary.passed,
        unchanging=_read_only_buffers(function, summary, aliasing),
        filled=filled_buffers(function),
        unmasked=_unmasked_stores(function, module.target_info),
        replaced=summary.replaced,
    )
    return FunctionEmitter(
        module, tables, IRBuilder(f"{signature} {attributes}"), info=info, form=form
    )


def _unmasked_stores(function: Function, target_info: TargetInfo) -> frozenset[Store]:
    """Return the stores that need no mask, if a mask costs anything."""
    return stores_of_unread_lanes(function) if target_info.has_costly_masks else frozenset()


@typed
def bounds_checked_buffers(flat: Module) -> tuple[str, ...]:
    """Return the names of the buffers that have guards; `failed_buffer` of the workspace is an index into
    them.

    >>> from gossamer_ir.script import parse_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def take(x: T.handle, p: T.handle, y: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     P = T.match_buffer(p, (n,), "int64")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.serial(n):
    ...         T.guard(P[i] >= 0 and P[i] < n, X)
    ...         Y[i] = X[P[i]]
    ... ''')
    >>> bounds_checked_buffers(flat)
    ('X',)
    """
    return _checked_buffers_of(map(summarize, flat.functions))


def _checked_buffers_of(summaries: Iterable[FunctionSummary]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(name for summary in summaries for name in summary.bounds_checked_buffers)
    )


def _new_module_emitter(
    flat: Module,
    target_info: TargetInfo,
    summaries: Mapping[str, FunctionSummary],
) -> ModuleEmitter:
    prefix = f"{KERNEL_SYMBOL}_" if target_info.is_device else "f"
    symbols = {f.name: f"{prefix}{number}" for number, f in enumerate(flat.functions)}
    symbols[flat.entry] = KERNEL_SYMBOL
    checked = _checked_buffers_of(summaries.values())
    return ModuleEmitter(target_info, symbols, checked)


def _signature_text(
    module: ModuleEmitter,
    function: Function,
    summary: FunctionSummary,
    aliasing: frozenset[str],
    *,
    is_entry: bool,
) -> str:
    parameters = []
    exchanged = _exchange_handles(module, function, summary)
    for number, param in enumerate(function.params):
        notes = [] if function.name in aliasing or param.name in exchanged else ["noalias"]
        if param.name not in summary.passed:
            # Not for pointers that are passed on: the closure of a parallel loop stores them.
            notes += ["nocapture"] if param.name in summary.written else ["nocapture", "readonly"]
        parameters.append(_parameter_text(module, param, number, notes, is_entry=is_entry))
    name = module.symbols[function.name]
    text = f"@{name}({', '.join([*parameters, 'ptr %ws'])})"
    if module.target_info.is_device:
        return f"void {text}"
    return f"{'' if is_entry else 'internal '}i64 {text}"


def _attributes(summary: FunctionSummary, *, is_entry: bool) -> str:
    # An entry that only launches loops runs once per call, so optimizing it costs more than it saves.
    if is_entry and summary.has_only_calls:
        return COLD
    return f"{HOT} align {CODE_ALIGNMENT}"


def _exchange_handles(
    module: ModuleEmitter, function: Function, summary: FunctionSummary
) -> frozenset[str]:
    """Return the handles of buffers by which threads may exchange values.

    LLVM assumes that a barrier changes no memory behind a `noalias` pointer, but other threads do.
    """
    if not module.target_info.is_device:
        return frozenset()
    return summary.written if nodes_of_type(function, *SYNCHRONIZING_STMTS) else frozenset()


def _read_only_buffers(
    function: Function, summary: FunctionSummary, aliasing: frozenset[str]
) -> frozenset[str]:
    """Return the buffers that neither the function nor one that it calls writes."""
    # With aliases, a store to one buffer could change another that is only read.
    if function.name in aliasing:
        return frozenset()
    changing = summary.written | summary.passed
    return frozenset(
        buffer.name
        for buffer in function.buffers
        if isinstance(buffer, Buffer)
        and buffer.handle is not None
        and buffer.handle not in changing
    )


def _emit_function(emitter: FunctionEmitter, function: Function) -> None:
    emitter.open()
    emitter.form.begin(emitter)
    _bind_parameters(emitter, function)
    emitter.form.body(emitter, function.body)
    emitter.close()


def _parameter_text(
    module: ModuleEmitter, param: Param, number: int, notes: list[str], *, is_entry: bool
) -> str:
    module.require_dtype(param.dtype)
    if param.dtype == "handle":
        return " ".join(["ptr", *notes, f"%p{number}"])
    # ctypes passes integers in 64 bits, whatever their dtype is.
    is_widened = is_entry and not DType.parse(param.dtype).is_float
    return f"{'i64' if is_widened else value_type(param.dtype)} %p{number}"


def _bind_parameters(emitter: FunctionEmitter, function: Function) -> None:
    for number, param in enumerate(function.params):
        value = Value(f"%p{number}", param.dtype)
        emitter.vars.values[param.name] = (
            _to_own_type(emitter, value) if emitter.info.is_entry else value
        )
    for buffer in function.buffers:
        if isinstance(buffer, Buffer) and buffer.handle is not None:
            emitter.buffers[buffer.name] = BufferAddress(
                buffer, emitter.vars.values[buffer.handle].text
            )


def _to_own_type(emitter: FunctionEmitter, value: Value) -> Value:
    """Return the value in its own type: integers and bools are passed in 64 bits."""
    dtype = DType.parse(value.dtype)
    if dtype.kind == "bool":
        return Value(emitter.builder.value(f"icmp ne i64 {value.text}, 0"), value.dtype)
    if dtype.is_integer and dtype.bits < 64:
        return Value(emitter.builder.value(f"trunc i64 {value.text} to {value.type}"), value.dtype)
    return value


def _module_text(module: ModuleEmitter) -> str:
    attributes = " ".join(["nounwind", *module.target_info.attributes])
    metadata = [f"!{number} = {text}" for number, text in enumerate(module.metadata)]
    head = [f'target triple = "{module.target_info.triple}"']
    if module.target_info.data_layout:
        head.insert(0, f'target datalayout = "{module.target_info.data_layout}"')
    parts = [*head, "", *module.definitions, *module.declarations.values(), ""]
    groups = [
        f"attributes {HOT} = {{ {attributes} }}",
        f"attributes {COLD} = {{ noinline optnone {attributes} }}",
    ]
    named = () if module.debug is None else module.debug.named_metadata
    text = "\n".join([*parts, *groups, *named, *metadata, ""])
    return in_llvm_units(text, module.target_info.vscale_bits)
