"""Workloads, baselines and timings for `gossamer run` and `gossamer demo`."""
