"""From flat modules to object code, and micro-kernels written for it."""
