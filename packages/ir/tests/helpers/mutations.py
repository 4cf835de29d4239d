"""Damages encoded modules and scripts with a fixed seed; as a program, it tests many of them.

Each damaged text is passed to every reader. A reader must either accept it, and reproduce it in a round
trip, or raise an error of gossamer, in bounded time.

    python packages/ir/tests/helpers/mutations.py --count 100000 --seed 1
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gossamer_ir.errors import InternalError, PluginError, UserError
from gossamer_ir.interchange import serialization
from gossamer_ir.interchange.envelopes import RECORDS
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics

FOLDER = Path(__file__).parents[1]
LONGEST = 20
"""Seconds after which an input counts as hanging."""

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, "", "x", "i",
    "\u0000", "a" * 300, "é", "__class__", "int64", "float32x4", "float32x99999", "handle", "inf",
    [], {}, [[]], [{}], {"type": "Var"}, {"type": "Const", "dtype": "int64", "text": "1"},
    {"type": "Const", "dtype": "float32", "text": "nan"}, {"type": "Unknown"}, "add", "loop", "flat",
    {"type": "Var", "name": "i", "dtype": "int64"}, {"type": "VScale"}, "P", "X",
    {"type": "Binary", "op": "floordiv", "lhs": None, "rhs": None},
)  # fmt: skip
TOKENS = (
    "(", ")", "[", "]", "{", "}", ",", ":", "=", "->", "@", ".", "*", "**", "//", "%", "+", "-", "<",
    "==", "and", "or", "not", "if", "else", "for", "in", "while", "with", "as", "def", "lambda",
    "None", "True", "0", "-1", "1e400", "10**10**10", "9" * 5000, "1j", "b''", "f'{x}'", '"""', "#",
    "\\", "\n", "    ", "\t", "\x00", "\u2028", "T", "T.sp", "T.block", "T.float32", "T.axis.remap",
    "T.serial", "T.match_buffer", "T.search", "T.ramp", "T.Select", "T.assume", "T.init()", "i", "n",
    "yield", "await", "async", "import os", "exec", "__import__('os')", "global x", "del x", ";", "~",
    "T.stage('flat')", "T.int64", "'''", "...", ":=", "é", "match", "case", "try", "class C: pass",
)  # fmt: skip


class Hang(Exception):
    """An input took too long."""


WRONG = (
    Hang, AssertionError, RecursionError, MemoryError, LookupError, TypeError, ValueError, NameError,
    AttributeError, ArithmeticError, RuntimeError, SyntaxError, OSError, InternalError, PluginError,
)  # fmt: skip
"""The exceptions that no text may cause."""


@contextmanager
def limited(seconds: int = LONGEST) -> Iterator[None]:
    """Raise `Hang` after so many seconds of CPU time of this process."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def samples() -> list[bytes]:
    """The stored samples: modules and records."""
    return [path.read_bytes() for path in sorted((FOLDER / "samples").glob("*.json"))]


def scripts() -> list[str]:
    """The golden scripts of all stages."""
    paths = sorted((FOLDER / "golden").glob("*.txt"))
    texts = [path.read_text() for path in paths]
    modules = [serialization.loads(data) for data in samples() if b'"record"' not in data]
    return texts + [print_module(module) for module in modules]


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Some bytes are replaced, removed, doubled or swapped."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, length = rng.randrange(len(text) + 1), rng.choice((1, 1, 3, 20, 200))
        match rng.randrange(6):
            case 0 if text:
                text[at % len(text)] = rng.randrange(256)
            case 1:
                del text[at : at + length]
            case 2:
                text[at:at] = rng.randbytes(length)
            case 3:
                text[at:at] = text[at : at + length] * rng.choice((1, 2, 50))
            case 4:
                del text[at:]
            case _:
                other = rng.randrange(len(text) + 1)
                text[at:at] = text[other : other + length]
    return bytes(text)


def damaged_json(rng: random.Random, data: bytes) -> bytes:
    """Some values are replaced, removed, nested or moved."""
    try:
        return _damaged_tree(rng, json.loads(data))
    except (RecursionError, ValueError):  # too deep, or a value became a part of itself
        return b"[" * 5000


def _damaged_tree(rng: random.Random, tree: Any) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(7):
            case 0 | 1:
                holder[key] = copy.deepcopy(rng.choice(STRANGE))
            case 2 | 3:
                other, name = rng.choice(places)
                holder[key] = copy.deepcopy(other[name])
            case 4:
                del holder[key]
            case 5:
                for _ in range(rng.choice((1, 3, 50, 400))):
                    holder[key] = rng.choice(
                        ({"type": "Unary", "op": "neg", "operand": holder[key]}, [holder[key]])
                    )
            case _ if isinstance(holder, dict):
                holder[rng.choice(("type", "name", "extra", "body", "dtype"))] = copy.deepcopy(
                    holder[key]
                )
            case _:
                holder.extend(copy.deepcopy(holder[:20]))
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    stack = [tree]
    while stack:
        holder = stack.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                stack.append(holder[key])


_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def damaged_script(rng: random.Random, text: str) -> str:
    """Some tokens or lines are replaced, removed, doubled or moved."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.3:
            text = _damaged_lines(rng, text)
            continue
        parts = _TOKEN.findall(text)
        if not parts:
            break
        at = rng.randrange(len(parts))
        match rng.randrange(5):
            case 0 | 1:
                parts[at] = rng.choice(TOKENS)
            case 2:
                parts[at] = rng.choice(parts)
            case 3:
                del parts[at]
            case _:
                parts[at:at] = [rng.choice(("(", "[", "-", "not ", "T.exp("))] * rng.choice(
                    (1, 30, 300)
                )
        text = "".join(parts)
    return text


def _damaged_lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at] = "    " + lines[at]
        case 3:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            depth = len(lines[at]) - len(lines[at].lstrip())
            lines[at : at + 1] = [
                " " * (depth + 4 * level) + "for _ in T.serial(2):\n"
                for level in range(rng.choice((1, 40, 120)))
            ]
    return "".join(lines)


def read_encoded(data: bytes) -> str:
    """The outcome of reading a text as a module and as each kind of record."""
    outcome = _read_module(data)
    for kind in RECORDS:
        try:
            record = serialization.loads_record(data, kind)
        except UserError:
            continue
        assert serialization.loads_record(serialization.dumps_record(record), kind) == record
        outcome = f"record {kind.__name__}"
    return outcome


def _read_module(data: bytes) -> str:
    try:
        module = serialization.loads(data)
    except UserError as error:
        return error.code
    assert serialization.loads(serialization.dumps(module)) == module
    reported = diagnostics(module)
    if reported:
        return reported[0].code
    try:
        text = print_module(module)
    except UserError as error:
        return error.code
    assert parse_module(text) == module, "the printed module is another"
    return "read"


def read_script(text: str) -> str:
    """The outcome of reading a text as a script."""
    try:
        module = parse_module(text)
    except UserError as error:
        return error.code
    reported = diagnostics(module)
    serialization.loads(serialization.dumps(module))
    if reported:
        return reported[0].code
    assert parse_module(print_module(module)) == module, "the printed module is another"
    return "read"


def cases(seed: int, count: int) -> Iterator[tuple[str, Callable[[Any], str], Any]]:
    """Inputs of all kinds, each with its reader."""
    rng = random.Random(seed)
    encoded, texts = samples(), scripts()
    for number in range(count):
        match number % 5:
            case 0:
                yield "bytes", read_encoded, damaged_bytes(rng, rng.choice(encoded))
            case 1 | 2:
                yield "json", read_encoded, damaged_json(rng, rng.choice(encoded))
            case 3:
                yield "script", read_script, damaged_script(rng, rng.choice(texts))
            case _ if rng.random() < 0.5:
                damaged = damaged_bytes(rng, rng.choice(texts).encode())
                yield "text", read_script, damaged.decode(errors="replace")
            case _:
                yield "noise", read_encoded, rng.randbytes(rng.randrange(200))


def run(seed: int, count: int) -> tuple[Counter[str], list[tuple[str, Any]]]:
    """The outcomes of the inputs, and the failures."""
    outcomes: Counter[str] = Counter()
    failed: list[tuple[str, Any]] = []
    for kind, read, data in cases(seed, count):
        try:
            with limited():
                outcomes[f"{kind}: {read(data)}"] += 1
        except WRONG:
            failed.append((f"{kind}\n{traceback.format_exc(limit=-6)}", data))
    return outcomes, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcomes, failed = run(options.seed, options.count)
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:8} {outcome}")
    for why, data in failed:
        print(f"{why}{data!r}"[:6000], file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
