"""`schema.json` of `gossamer_ir`: the JSON schema of serialized text, from the nodes.

It is stored so that a test can classify what a change of the nodes does to text that exists.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from gossamer_ir.interchange.schema import schema
from tools import ROOT

SCHEMA_FILE = ROOT / "packages/ir/src/gossamer_ir/interchange/schema.json"


def files() -> dict[Path, str]:
    """Return the text of `schema.json` for the current nodes."""
    return {
        SCHEMA_FILE: msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode() + "\n"
    }
