"""The parts of a run beside kernels, one file each: calls, start, compile time, mini-batches."""
