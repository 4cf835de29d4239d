"""Backends and the plugins that register them: discovery, hooks, protocol and capabilities."""
