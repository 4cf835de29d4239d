"""Lines of one LLVM function: numbered values, numbered blocks, allocas in front."""

from __future__ import annotations

_EFFECTS = ("load", "call", "phi", "atomicrmw")
"""Instructions whose results may differ from one time to the next."""

HOT = "#0"
COLD = "#1"
"""Attribute groups. A function that runs once for each call or chunk is not worth LLVM's time: the
parallel machinery of a kernel took two thirds of it."""


class FunctionText:
    """Collects the lines of a function; values are `%v1`, ..., blocks `b1`, ..."""

    def __init__(self, signature: str) -> None:
        self._signature = signature
        self._front: list[str] = []
        self._lines: list[str] = []
        self._values = 0
        self._blocks = 0
        self._known: dict[str, str] = {}
        self.block = "start"

    def line(self, text: str) -> None:
        """Appends an instruction without a result."""
        self._lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """Appends an instruction and returns its result's name; one that only computes is not
        repeated within a block."""
        known = self._known.get(text)
        if known is not None:
            return known
        self._values += 1
        name = f"%v{self._values}"
        self._lines.append(f"  {name} = {text}")
        if not text.startswith(_EFFECTS):
            self._known[text] = name
        return name

    def alloca(self, type_: str, *, align: int) -> str:
        """Reserves stack memory once for each call of the function."""
        self._values += 1
        name = f"%v{self._values}"
        self._front.append(f"  {name} = alloca {type_}, align {align}")
        return name

    def at_entry(self, text: str) -> None:
        """Appends an instruction that runs once, after the allocas before it."""
        self._front.append(f"  {text}")

    def new_block(self) -> str:
        """The name of a block that `begin` starts later."""
        self._blocks += 1
        return f"b{self._blocks}"

    def begin(self, block: str) -> None:
        """Starts a block; the one before it must have ended."""
        self._lines.append(f"{block}:")
        self._known.clear()
        self.block = block

    def jump(self, block: str) -> None:
        """Ends the block."""
        self.line(f"br label %{block}")

    def fall_into(self, block: str) -> None:
        """Ends the block and starts the one that follows."""
        self.jump(block)
        self.begin(block)

    def branch(self, condition: str, if_true: str, if_false: str, *, suffix: str = "") -> None:
        """Ends the block with a choice."""
        self.line(f"br i1 {condition}, label %{if_true}, label %{if_false}{suffix}")

    def render(self) -> str:
        """The whole definition."""
        front = [f"define {self._signature} {{", "entry:", *self._front, "  br label %start"]
        return "\n".join([*front, "start:", *self._lines, "}", ""])
