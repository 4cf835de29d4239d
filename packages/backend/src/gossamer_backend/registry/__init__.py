"""Backends and how they are found: plugins, their hooks, what they declare and require."""
