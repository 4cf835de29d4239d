"""What schedules and models of costs assume of a machine: vectors, registers, caches and cache lines."""
