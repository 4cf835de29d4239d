"""Workloads, reference results and timings for `gossamer run` and `gossamer demo`."""
