"""The groups of entry points by which installed distributions extend gossamer."""

from __future__ import annotations

import msgspec


class PluginGroup(msgspec.Struct, frozen=True):
    """A group of entry points: the form of their names, the object that each names, what it adds, and the
    page of the documentation that describes it."""

    name: str
    entry_point: str
    object: str
    adds: str
    page: str


BACKEND_GROUP = PluginGroup(
    "gossamer.plugins",
    "<backend>",
    "a module with hooks",
    "a backend, with its rules, passes, primitives and intrinsics",
    "[Write a backend](backends.md)",
)
EXTENSION_GROUP = PluginGroup(
    "gossamer.extensions",
    "<backend>.<extension>",
    "a module with hooks",
    "rules, passes, primitives and intrinsics for a backend that exists",
    "[Extend a backend](#extend-a-backend)",
)
FORMAT_GROUP = PluginGroup(
    "gossamer.formats",
    "<format>",
    "a `gossamer_formats.Format`",
    "a format of tensors",
    "[Formats](formats.md#tensors-in-a-format-of-your-own)",
)
COMPOSABLE_FORMAT_GROUP = PluginGroup(
    "gossamer.composable_formats",
    "<format>",
    "a `gossamer_formats.ComposableFormat`",
    "a composable format, which stores a tensor in several parts",
    "[Formats](formats.md#a-composable-format-of-your-own)",
)
OPERATOR_GROUP = PluginGroup(
    "gossamer.operators",
    "<format>.<operator>",
    "a function",
    "an operator for tensors of that format",
    "[Operators of a format](#operators-of-a-format)",
)
FILE_FORMAT_GROUP = PluginGroup(
    "gossamer.file_formats",
    "<suffix>",
    "a `gossamer_formats.FileFormat`",
    "a format of files, which `read` and `write` select by the suffix",
    "[Files](formats.md#a-file-format-of-your-own)",
)
COST_MODEL_GROUP = PluginGroup(
    "gossamer.cost_models",
    "<model>",
    "a function",
    "estimates for the choice of a format",
    "[Cost models](#cost-models)",
)

COMPILER_GROUP = PluginGroup(
    "gossamer.compilers",
    "`compile`, `threads` or `machine`",
    "a function",
    "the compiler of conversions, the number of their threads and their machine, which `gossamer` registers",
    "not described: internal",
)

PLUGIN_GROUPS = (
    BACKEND_GROUP,
    EXTENSION_GROUP,
    FORMAT_GROUP,
    COMPOSABLE_FORMAT_GROUP,
    OPERATOR_GROUP,
    FILE_FORMAT_GROUP,
    COST_MODEL_GROUP,
)
"""`gossamer --version` lists the distributions that have such entry points, and `python -m tools.generate
plugins` writes the table of `docs/plugins.md` from these records. `COMPILER_GROUP` is not for plugins."""
