"""Programs of papers on sparse compilers: each as a script, formats and schedules. See README.md."""

from __future__ import annotations

from examples import relational_convolution, sparse_convolution, spmm
from examples.example import Example

EXAMPLES: dict[str, Example] = {
    found.name: found
    for found in (spmm.EXAMPLE, relational_convolution.EXAMPLE, sparse_convolution.EXAMPLE)
}
"""All examples by name."""
