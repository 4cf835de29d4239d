"""Examples in docstrings become blocks of code: Markdown would take `>>>` for quotations."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Rewrites each docstring that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put fences around the examples of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)


def fence_examples(text: str) -> str:
    r"""Return the text with a fence around each example, which begins with `>>>` and ends at an empty line.

    >>> fence_examples("Adds.\n\n>>> 1 + 1\n2").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    lines: list[str] = []
    example = block = False
    for line in text.splitlines():
        block ^= line.lstrip().startswith("```")
        if not (example or block) and line.lstrip().startswith(">>> "):
            indent = line[: len(line) - len(line.lstrip())]
            lines += ["", f"{indent}```pycon"] if lines and lines[-1] else [f"{indent}```pycon"]
            example = True
        elif example and not line.strip():
            lines.append(f"{indent}```")
            example = False
        lines.append(line)
    return "\n".join([*lines, f"{indent}```"] if example else lines)
