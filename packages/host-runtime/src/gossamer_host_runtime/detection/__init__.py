"""Detect the CPU of this machine and its caches."""
