"""Runs the Python examples of a Markdown document in one namespace.

    python tests/doctests/documents.py README.md

A block contains statements, or examples with their results (which start with ">>> "). It needs only what
the document imports.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_examples(document: Path) -> int:
    """Return the number of blocks that were run; raise `AssertionError` if a result differs."""
    blocks = PYTHON.findall(document.read_text())
    names: dict[str, Any] = {"__name__": document.stem}
    for number, code in enumerate(blocks):
        if code.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(code, names, document.name, None, number)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            names.update(test.globs)
        else:
            exec(compile(code, str(document), "exec"), names)
    return len(blocks)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        count = run_examples(Path(argument))
        assert count, f"{argument} has no example"
        print(f"{argument}: {count} examples run")
