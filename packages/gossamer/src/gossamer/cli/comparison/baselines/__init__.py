"""The programs that users of NumPy and SciPy write for each operator, and the bounds of their rounding
errors; one file for each operator.

`gossamer run` times them beside gossamer. In float64 they are also the expected results. The oracles of the
tests, which do not use SciPy, are in `gossamer_testkit.matrices.oracles`.
"""

from gossamer.cli.comparison.baselines.by_name import baseline_of

__all__ = ["baseline_of"]
