"""Backends and the plugins that register them: the registry, hooks, protocol and capabilities."""
