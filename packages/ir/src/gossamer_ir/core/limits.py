"""The limit of the depth of modules, in memory and as scripts."""

from __future__ import annotations

MAX_DEPTH = 190
"""The largest number of nodes on a path from a module to a leaf, both included: Python's parser refuses 200
nested brackets."""
