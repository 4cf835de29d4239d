"""The machine that schedules, code generation and models of costs assume: vectors, registers and caches."""
