from __future__ import annotations


def measure_compile_times(ops, console):
    return ()
