"""Operators beside the programs of SciPy, for `gossamer run`, `gossamer demo` and the benchmarks: graphs,
operands, accuracy and timing."""
