"""Names for the other distributions of the release, besides the exports of the package.

The passes by name, the pipeline with extension points, and the report of bounds checks. A release pins the
versions of its distributions, so these names may change with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_lower.bounds_checks.report import BoundsCheck, bounds_checks_of
    from gossamer_lower.lowering_pass import PassRecord
    from gossamer_lower.passes_by_name import PASSES, apply_pass, apply_record
    from gossamer_lower.pipelines.extension_points import (
        EXTENSION_POINTS,
        ExtensionPoint,
        lower_with_extensions,
    )

_HOMES = {
    "BoundsCheck": "gossamer_lower.bounds_checks.report",
    "EXTENSION_POINTS": "gossamer_lower.pipelines.extension_points",
    "ExtensionPoint": "gossamer_lower.pipelines.extension_points",
    "PASSES": "gossamer_lower.passes_by_name",
    "PassRecord": "gossamer_lower.lowering_pass",
    "apply_pass": "gossamer_lower.passes_by_name",
    "apply_record": "gossamer_lower.passes_by_name",
    "bounds_checks_of": "gossamer_lower.bounds_checks.report",
    "lower_with_extensions": "gossamer_lower.pipelines.extension_points",
}

__all__ = [
    "BoundsCheck",
    "EXTENSION_POINTS",
    "ExtensionPoint",
    "PASSES",
    "PassRecord",
    "apply_pass",
    "apply_record",
    "bounds_checks_of",
    "lower_with_extensions",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
