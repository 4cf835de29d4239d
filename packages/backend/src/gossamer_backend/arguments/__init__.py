"""Arguments of kernels: arrays, scalars, sizes, and facts about index arrays."""
