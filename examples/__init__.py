"""Programs of papers on sparse compilers: each as a script, formats and schedules. See README.md."""

from __future__ import annotations

from examples import (
    band_and_blocks_attention,
    block_sparse_attention,
    pruned_layer,
    relational_convolution,
    sddmm,
    sparse_convolution,
    spmm,
)
from examples.example import Example

EXAMPLES: dict[str, Example] = {
    folder.name: folder
    for folder in (
        spmm.EXAMPLE,
        sddmm.EXAMPLE,
        relational_convolution.EXAMPLE,
        sparse_convolution.EXAMPLE,
        block_sparse_attention.EXAMPLE,
        band_and_blocks_attention.EXAMPLE,
        pruned_layer.EXAMPLE,
    )
}
"""All examples by name."""
