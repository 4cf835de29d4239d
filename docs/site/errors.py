"""The page of error codes, made of the recorded examples."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

HEAD = """\
# Error codes

Every error of gossamer is a `GossamerError` with a stable code. The text shows it in
brackets, and `error.code` holds it. Below is one example for each code.
[Unsupported constructs](unsupported.md) shows the programs that raise the errors for unsupported constructs.
"""


def page(root: Path) -> str:
    """Return a section for each part of gossamer with a table of its codes."""
    parts: dict[str, dict[str, str]] = defaultdict(dict)
    for row in json.loads((root / "tests/golden/errors.json").read_text()):
        code = row["code"]
        parts[code.partition(".")[0]].setdefault(code, row["text"])
    return "\n".join([HEAD, *(section(name, parts[name]) for name in sorted(parts))])


def section(name: str, codes: dict[str, str]) -> str:
    """Return the heading of a part, and an entry for each code."""
    entries = [f"`{code}`\n\n{quote_message(text, code)}\n" for code, text in sorted(codes.items())]
    return "\n".join([f"## {name}\n", *entries])


def quote_message(text: str, code: str) -> str:
    """Return the message as a block of text, without the code that it ends with."""
    lines = text.replace(f" [{code}]", "").rstrip().splitlines()
    return "\n".join(["```text", *lines, "```"])
