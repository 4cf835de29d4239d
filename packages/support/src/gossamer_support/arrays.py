"""The type of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
"""An array of NumPy of any shape and dtype."""
