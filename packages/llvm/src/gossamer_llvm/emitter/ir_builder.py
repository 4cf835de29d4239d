"""Builds the text of one LLVM function: numbered values, numbered blocks, allocas in the entry block.

Instructions without side effects are hoisted out of the loops in which their operands are invariant, and
common subexpressions are emitted once. llvmlite does not offer LLVM's own pass for that.
"""

from __future__ import annotations

import re

import msgspec

_EFFECTS = ("load", "phi", "atomicrmw", "cmpxchg", "call")
_PURE_CALL = re.compile(r"call (ptr asm|[^@]*@llvm\.(?!masked|prefetch|memset))")
_OPERAND = re.compile(r"%v\d+")

HOT = "#0"
COLD = "#1"
"""Attribute groups. Functions that run once for each call or chunk are not optimized: the runtime code of
parallel loops took two thirds of the compile time of a kernel."""


class _LoopLines(msgspec.Struct):
    """A loop: `lines` are the instructions hoisted before it, `known` their values by text."""

    lines: list[str] = []
    known: dict[str, str] = {}


class IRBuilder:
    """Collects the lines of a function. Values are named `%v1`, ..., blocks `b1`, ..."""

    def __init__(self, signature: str) -> None:
        self._signature = signature
        self._front: list[str] = []
        self._lines: list[str | list[str]] = []
        self._values = 0
        self._blocks = 0
        self._known: dict[str, str] = {}
        self._loops: list[_LoopLines] = []
        self._depths: dict[str, int] = {}
        self.block = "start"
        self.location: str | None = None
        """The metadata with the place of the instructions in the text of the module, if that is wanted."""

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(self._with_location(text))

    def value(self, text: str) -> str:
        """Emit an instruction and return the name of its result.

        An instruction without side effects is hoisted before the loops in which its operands are invariant,
        and an equal one in the same block or loop is reused.

        >>> builder = IRBuilder("define i32 @f()")
        >>> builder.value("add i32 1, 2"), builder.value("add i32 1, 3"), builder.value("add i32 1, 2")
        ('%v1', '%v2', '%v1')
        """
        inside = len(self._loops)
        # Loads are never moved here: whether memory changes is known to the emitter (`remember`), not to
        # the builder.
        if text.startswith(_EFFECTS) and not _PURE_CALL.match(text):
            return self.value_in_place(text)
        depth = self._depth_of(text) if inside else 0
        is_hoisted = depth < inside
        lines = self._loops[depth].lines if is_hoisted else self._lines
        names = self._loops[depth].known if is_hoisted else self._known
        name = names.get(text)
        if name is None:
            name = names[text] = self._append(lines, text, depth=depth)
        return name

    def value_in_place(self, text: str) -> str:
        """Emit an instruction that is neither hoisted nor shared, and return the name of its result."""
        return self._append(self._lines, text, depth=len(self._loops))

    def _depth_of(self, text: str) -> int:
        """Return the number of loops around the innermost operand of an instruction."""
        depths, deepest = self._depths, 0
        for name in _OPERAND.findall(text):
            depth = depths.get(name, 0)
            if depth > deepest:
                deepest = depth
        return deepest

    def forward(self) -> str:
        """Return the name of a value of this loop that `define` defines later, for a phi."""
        self._values += 1
        name = f"%v{self._values}"
        self._depths[name] = len(self._loops)
        return name

    def define(self, name: str, text: str) -> None:
        """Append the instruction of a forward name."""
        self._lines.append(self._with_location(f"{name} = {text}"))

    def _append(self, lines: list[str] | list[str | list[str]], text: str, *, depth: int) -> str:
        self._values += 1
        name = f"%v{self._values}"
        lines.append(self._with_location(f"{name} = {text}"))
        if depth:
            self._depths[name] = depth
        return name

    def _with_location(self, text: str) -> str:
        return f"  {text}" if self.location is None else f"  {text}, !dbg {self.location}"

    def enter_loop(self) -> None:
        """Start a loop, which ends with `leave_loop`; the current block must not have ended."""
        loop = _LoopLines()
        self._loops.append(loop)
        # A list inside the list: instructions hoisted later still come before the loop.
        self._lines.append(loop.lines)

    @property
    def is_in_loop(self) -> bool:
        """True if the current block is inside a loop."""
        return bool(self._loops)

    @property
    def loop_depth(self) -> int:
        """The number of loops around the current block."""
        return len(self._loops)

    def leave_loop(self) -> None:
        """End the loop that `enter_loop` started."""
        self._loops.pop()

    def alloca(self, type_: str, *, align: int) -> str:
        """Reserve stack memory once for each call of the function."""
        self._values += 1
        name = f"%v{self._values}"
        self._front.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def at_entry(self, text: str) -> None:
        """Append an instruction that runs once, after the allocas before it."""
        self._front.append(f"  {text}")

    def new_block(self) -> str:
        """Return the name of a block that `begin` starts later."""
        self._blocks += 1
        return f"b{self._blocks}"

    def begin(self, block_name: str) -> None:
        """Start a block; the one before it must have ended."""
        self._lines.append(f"{block_name}:")
        # A value of another block need not dominate this one. Hoisted values are kept with their loop.
        self._known.clear()
        self.block = block_name

    def jump(self, block_name: str) -> None:
        """End the block."""
        self.line(f"br label %{block_name}")

    def fall_into(self, block_name: str) -> None:
        """End the block and start the one that follows."""
        self.jump(block_name)
        self.begin(block_name)

    def branch(self, condition: str, if_true: str, if_false: str, *, suffix: str = "") -> None:
        """End the block with a conditional branch."""
        self.line(f"br i1 {condition}, label %{if_true}, label %{if_false}{suffix}")

    def render(self) -> str:
        """Return the definition of the function."""
        front = [f"define {self._signature} {{", "entry:", *self._front, "  br label %start"]
        lines = [line if isinstance(line, str) else "\n".join(line) for line in self._lines if line]
        return "\n".join([*front, "start:", *lines, "}", ""])
