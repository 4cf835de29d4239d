"""Workloads, contenders and timings for `gossamer run` and `gossamer demo`."""
