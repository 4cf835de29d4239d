"""Phrases that the hints for names of several compilers share."""

from __future__ import annotations

BY_NAME = "Loops, blocks and buffers are addressed by their names"
MODULE = "builder.module is the module with all steps applied."
NONE = "There is no counterpart"
LAYOUT = (
    "transform_layout(buffer, index_map=...) changes the dimensions of a buffer of the function."
)
