"""Where buffers are allocated, and how large."""
