"""Operators beside the programs of SciPy: operands, accuracy and timing for `gossamer run` and `demo`."""
