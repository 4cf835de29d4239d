"""Traces: the registry of primitives, replaying their steps, and steps as text."""
