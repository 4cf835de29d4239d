"""The size of a cache line, which schedules, code generation and the allocation of arrays agree on."""

LINE_BYTES = 64
"""The size of a cache line on nearly every machine. On another one, results are the same, only slower."""
