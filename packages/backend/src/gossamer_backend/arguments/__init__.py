"""What a caller passes to a kernel: arrays, scalars, sizes, facts about index arrays."""
