"""The passes from the coordinate stage to the flat stage, one file each.

`passes.py` lists them; each can be imported from this package.
"""

from typing import TYPE_CHECKING

from gossamer_lower.bounds_check_flat import bounds_check_flat as bounds_check_flat
from gossamer_lower.lower_to_flat import FLAT_PASSES as FLAT_PASSES
from gossamer_lower.lower_to_flat import LISTED as _LISTED
from gossamer_lower.lower_to_flat import lower_to_flat as lower_to_flat
from gossamer_lower.passes import *  # noqa: F403 - every pass, which is what the module is for

if not TYPE_CHECKING:
    # Type checkers read the imports above; they would not understand an `__all__` that is computed.
    __all__ = [
        "bounds_check_flat",
        "FLAT_PASSES",
        "lower_to_flat",
        *(record.name for record in _LISTED),
    ]
