"""From a module to a kernel: schedules, passes, the backend, and caches of kernels."""
