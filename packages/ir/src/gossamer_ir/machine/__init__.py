"""The machine that schedules and models of costs assume: vectors, registers, caches and cache lines."""
