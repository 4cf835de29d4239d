"""Random wrong input to the public API: arguments of primitives, passes and the builder, damaged scripts
and damaged JSON. Each call must return a result or raise an error of gossamer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from gossamer_ir import dumps, loads, parse_expr, parse_format, parse_module, print_module
from gossamer_ir.errors import GossamerError, InternalError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.interchange.serialization import dumps_record, loads_record
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For, Module
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower.passes_by_name import PASSES, apply_pass
from gossamer_schedule import PRIMITIVES, ScheduleBuilder
from gossamer_schedule.trace.replay import parameters_of
from gossamer_testkit import script, script_names
from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.lowered.programs.scope import EXTREMES
from tests.fuzzing.schedules.argument_generators import GENERATORS, INTRINSICS, Scene

TIMEOUT_SECONDS = 60.0
"""Seconds after which a call counts as hanging."""
WRITTEN = 0.5
"""The share of hand-written modules."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, *EXTREMES, 2**64, 10**30, -(10**30), 1.5, float("nan"),
    float("inf"), "", " ", "i", "0", "T", "T.int64(", "x -> x", "x, y -> y", "x -> x // 0", "-> ",
    "x -> " + "x + " * 40 + "x", "\x00", "\ud800", "é", "a" * 10_000, "lambda: 0", "__class__", "$x",
    "T.vscale()", "i.j", b"", b"\xff", (), (None,), (None, None), ((),), ("i", "i"), (0,), (-1, 2),
    (None, 0), (None, -4), (2**62, None), (1,) * 50, ("",), [], ["i"], {}, {"i": 1}, {1: 2}, {"i"},
    object, len, ..., range(3), 1j, bytearray(b"i"), Step("split", {}),
)  # fmt: skip
"""Invalid arguments, and some valid ones."""


@dataclass(frozen=True)
class Call:
    """A call: `make` executes it, `says` is its text."""

    kind: str
    says: str
    make: Callable[[], object]

    def wrong(self) -> str | None:
        """Return the problem: an error that is not ours, or is ours and a bug."""
        try:
            self.make()
        except InternalError as error:
            return f"InternalError: {error}"
        except GossamerError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
            return f"{type(error).__name__}: {error}"
        return None


def draw_call(rng: Random) -> Call:
    """A call of one of the kinds."""
    kinds = [*CALLS]
    return CALLS[rng.choice(kinds)](rng)


# --- modules


def _module(rng: Random) -> Module:
    if rng.random() < WRITTEN:
        return parse_module(script(rng.choice(script_names())))
    return draw_lowered(rng).module


def _text(rng: Random) -> str:
    return (
        print_module(_module(rng)) if rng.random() < WRITTEN else script(rng.choice(script_names()))
    )


def _names(module: Module) -> list[str]:
    """The names that a user may use."""
    (function,) = module.functions[:1]
    nodes = [node for stmt in function.body for node in walk(stmt)]
    names = [node.var for node in nodes if isinstance(node, For)]
    names += [node.name for node in nodes if isinstance(node, Block)]
    return [*names, *(item.name for item in all_buffers(function)), function.name, "missing"]


# --- primitives


def _odd(rng: Random, module: Module) -> Any:
    if rng.random() < 0.5:
        name: str = rng.choice(_names(module))
        return rng.choice((name, name, (name,), (name, rng.choice(_names(module))), f"{name}_0"))
    return rng.choice(ODD)


def _arguments(rng: Random, op: str, module: Module) -> dict[str, Any]:
    """Arguments of a primitive: valid ones with one changed, or arbitrary ones."""
    names = [name.strip(". []=").split("=")[0] for name in parameters_of(op)]
    generator = GENERATORS.get(op)
    drawn = None
    if generator is not None and rng.random() < 0.6:
        drawn = generator(Scene(rng, module))
    args = dict(drawn or {name: _odd(rng, module) for name in names if rng.random() < 0.8})
    for _ in range(rng.choice((0, 1, 1, 2))):
        name = rng.choice([*args, *names, *(["unknown"] if rng.random() < 0.05 else [])])
        args[name] = _odd(rng, module)
    return args


def _listed(args: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in args.items())


def _primitive(rng: Random) -> Call:
    """A call of a primitive as a Python function."""
    module, op = _module(rng), rng.choice([*PRIMITIVES])
    args = _arguments(rng, op, module)

    def make() -> object:
        builder = ScheduleBuilder(module, intrinsics=INTRINSICS)
        return getattr(builder, op)(**args).module

    return Call("primitive", f"{print_module(module)}\nsch.{op}({_listed(args)})", make)


def _step(rng: Random) -> Call:
    """A step of a trace."""
    module, op = (
        _module(rng),
        rng.choice([*PRIMITIVES, "unknown"] if rng.random() < 0.1 else [*PRIMITIVES]),
    )
    args = {} if op == "unknown" else _arguments(rng, op, module)

    def make() -> object:
        return ScheduleBuilder(module, intrinsics=INTRINSICS).replay((Step(op, args),)).module

    return Call("step", f"{print_module(module)}\nStep({op!r}, {args!r})", make)


def _function(rng: Random) -> Call:
    """Calls a primitive or a builder with something that is not a module, or with an unknown function."""
    module, op = _module(rng), rng.choice([*PRIMITIVES])
    argument = rng.choice((module, *ODD[:50]))
    args = _arguments(rng, op, module)
    function = rng.choice((None, "main", "missing", *ODD[30:40]))

    def make() -> object:
        builder = ScheduleBuilder(argument, function=function, intrinsics=INTRINSICS)
        return getattr(builder, op)(**args).module

    says = f"ScheduleBuilder({argument!r:.200}, function={function!r}).{op}({_listed(args)})"
    return Call("function", says, make)


# --- passes


def _pass(rng: Random) -> Call:
    """A pass on a module of any stage, with arguments that it may not accept."""
    module, name = (
        _module(rng),
        rng.choice([*PASSES, "unknown"] if rng.random() < 0.05 else [*PASSES]),
    )
    args = {} if rng.random() < 0.7 else {
        rng.choice(("parts", "buffer", "block", "names", "x", "instructions")): _odd(rng, module)
    }  # fmt: skip

    def make() -> object:
        return apply_pass(name, module, arguments=args)

    return Call("pass", f"{print_module(module)}\napply_pass({name!r}, {args!r})", make)


def _passes(rng: Random) -> Call:
    """Some passes one after the other, in any order."""
    module, names = _module(rng), rng.choices([*PASSES], k=6)

    def make() -> object:
        lowered = module
        for name in names:
            try:
                lowered = apply_pass(name, lowered)
            except InternalError:
                raise
            except GossamerError:
                continue
            wrong = diagnostics(lowered)
            if wrong:
                raise AssertionError(f"not valid after {name}: {wrong[0].message}")
        return lowered

    return Call("passes", f"{print_module(module)}\n{names}", make)


# --- text

_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
_SPICE = (
    "-", "*", "//", "%", "(", ")", "[", "]", ":", ",", ".", "=", "==", "not", "and", "0", "1", "-1",
    "2**62", "9223372036854775807", "9223372036854775808", "1e400", "nan", "T.int64", "T.float32",
    "T.int32(3)", "n", "m", "i", "None", "True", "'x'", '"float32"', "float99", "int8x4", "while",
    "if", "for", "else:", "return", "yield", "lambda", "del", "T.ramp(0, 1, 4)", "T.vscale()",
    "T.search", "T.alloc_buffer((n,), 'int32')", "with", "T.block('b')", "\n", "\n    ", "\t", "\\",
    "é", "\x00", "#", "'''", "@", ":=", "*args", "**k", "...", "{}", "{1: 2}", "f'{x}'",
)  # fmt: skip


def mutated(rng: Random, text: str) -> str:
    """The text with a few of its tokens changed."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(tokens))
        kind = rng.choice(("spice", "spice", "drop", "double", "swap", "copy", "line"))
        if kind == "spice":
            tokens[at] = rng.choice(_SPICE)
        elif kind == "drop":
            tokens[at] = ""
        elif kind == "double":
            tokens[at] *= 2
        elif kind == "swap":
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == "copy":
            tokens[at] = tokens[rng.randrange(len(tokens))]
        else:
            lines = "".join(tokens).split("\n")
            place = rng.randrange(len(lines))
            lines[place : place + rng.choice((0, 1))] = [rng.choice(lines)]
            tokens = _TOKEN.findall("\n".join(lines)) or [""]
    return "".join(tokens)


def _program(rng: Random) -> Call:
    """A program with some of its text changed: what it is parsed as, if it is, is printed, parsed again,
    verified, interpreted without arguments, and lowered."""
    text = mutated(rng, _text(rng))

    def make() -> object:
        module = parse_module(text)
        if parse_module(print_module(module)) != module:
            raise AssertionError("its print is parsed as another module")
        if diagnostics(module):
            return None
        for name in ("lower_iterations", "lower_buffers", "lower_to_flat"):
            if PASSES[name].takes == (module.stage,):
                module = apply_pass(name, module)
                wrong = diagnostics(module)
                if wrong:
                    raise AssertionError(f"not valid after {name}: {wrong[0].message}")
        return run(module, {})

    return Call("program", text, make)


def _expr(rng: Random) -> Call:
    lines = [line for line in _text(rng).splitlines() if "=" in line]
    text = mutated(rng, rng.choice(lines or ["x"]).split("=", 1)[-1] or "x")
    dtypes = {"n": "int64", "m": "int64", "i": "int64", "x": "float32"}
    return Call("expression", text, lambda: parse_expr(text, dtypes))


def _format(rng: Random) -> Call:
    text = mutated(rng, _text(rng))
    return Call("format", text, lambda: parse_format(text))


# --- bytes


def _bytes(rng: Random, data: bytes) -> bytes:
    """The same with a few bytes, or tokens, changed."""
    if rng.random() < 0.5:
        return mutated(rng, data.decode()).encode("utf-8", "surrogatepass")
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(changed)) if changed else 0
        kind = rng.choice(("set", "drop", "insert", "cut"))
        if kind == "set" and changed:
            changed[at] = rng.randrange(256)
        elif kind == "drop":
            del changed[at : at + rng.choice((1, 2, 10))]
        elif kind == "insert":
            changed[at:at] = bytes(rng.choices(b'0123456789"[]{},:-e', k=rng.choice((1, 3))))
        else:
            del changed[at:]
    return bytes(changed)


def _wire(rng: Random) -> Call:
    """A module as JSON with some bytes changed; where it is one, it is verified and printed."""
    data = _bytes(rng, dumps(_module(rng)))

    def make() -> object:
        module = loads(data)
        return diagnostics(module) or print_module(module)

    return Call("wire", repr(data), make)


def _trace(rng: Random) -> Call:
    """A trace as JSON with some bytes changed, for a builder."""
    module = _module(rng)
    builder = ScheduleBuilder(module, intrinsics=INTRINSICS)
    for op in rng.choices([*GENERATORS], k=12):
        args = GENERATORS[op](Scene(rng, builder.module))
        if args is not None:
            try:
                builder.replay((Step(op, args),))
            except GossamerError:
                continue
    data = _bytes(rng, builder.to_json().encode())
    text: str | bytes = data.decode(errors="replace") if rng.random() < 0.8 else data
    says = f"{print_module(module)}\nScheduleBuilder.from_json(module, {text!r})"
    return Call("trace", says, lambda: ScheduleBuilder.from_json(module, text))


def _record(rng: Random) -> Call:
    """A schedule as JSON with some bytes changed."""
    step = Step(rng.choice([*PRIMITIVES]), {"loop": "i", "factors": (None, 4)})
    data = _bytes(rng, dumps_record(Schedule((step,), (), (step,))))
    return Call("record", repr(data), lambda: loads_record(data, Schedule))


CALLS: dict[str, Callable[[Random], Call]] = {
    "primitive": _primitive, "step": _step, "function": _function, "pass": _pass, "passes": _passes,
    "program": _program, "expression": _expr, "format": _format, "wire": _wire,
    "trace": _trace, "record": _record,
}  # fmt: skip
"""The function that draws each kind of call."""
