"""Functions and classes that packages share and that do not concern the language: the base classes of errors,
argument checks, caches, exports on first use, locks, plugins, cgroups."""

from __future__ import annotations

import gossamer_support.fork  # noqa: F401  (from here on, forks wait for imports)
