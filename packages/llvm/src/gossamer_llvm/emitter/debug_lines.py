"""Debug information: instructions name the line of a text from which they come.

The text is that of `print_module`. Only directives for lines are emitted (`.loc` and `.file` in PTX), no
description of variables and types, and no name of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from gossamer_ir.nodes import Function, Module, Stmt


class DebugLines(msgspec.Struct, frozen=True):
    """The lines of functions and statements by identity, and the metadata that names them."""

    lines: Mapping[int, int]
    add: Callable[[str], str]
    """Adds metadata to the module, and returns its name."""
    file: str
    unit: str
    type: str
    named_metadata: tuple[str, ...]
    """The definitions of metadata that LLVM looks for by name."""

    def subprogram(self, function: Function, symbol: str) -> str:
        """Return the metadata of a function."""
        return self.add(
            f'distinct !DISubprogram(name: "{symbol}", scope: {self.file}, file: {self.file}, '
            f"line: {self.lines[id(function)]}, type: {self.type}, unit: {self.unit}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )

    def location(self, stmt: Stmt, subprogram: str) -> str | None:
        """Return the metadata of the place of a statement; None if it is not in the text."""
        line = self.lines.get(id(stmt))
        if line is None:
            return None
        return self.add(f"!DILocation(line: {line}, column: 1, scope: {subprogram})")


def debug_lines(flat: Module, file: str, *, add: Callable[[str], str]) -> DebugLines:
    """Return the lines of a module in the file with its text, after adding the metadata of the file."""
    # Imported late: most modules are compiled without, and need no printer.
    from gossamer_ir.script.stmt_lines import stmt_lines

    in_text = add(f'!DIFile(filename: "{file}", directory: "")')
    unit = add(
        f'distinct !DICompileUnit(language: DW_LANG_Python, file: {in_text}, producer: "gossamer", '
        "isOptimized: true, runtimeVersion: 0, emissionKind: DebugDirectivesOnly)"
    )
    type_ = add(f"!DISubroutineType(types: {add('!{null}')})")
    version = add('!{i32 2, !"Debug Info Version", i32 3}')
    named = (f"!llvm.dbg.cu = !{{{unit}}}", f"!llvm.module.flags = !{{{version}}}")
    return DebugLines(stmt_lines(flat), add, in_text, unit, type_, named)
