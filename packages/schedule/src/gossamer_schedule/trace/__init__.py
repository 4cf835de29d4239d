"""Traces: the table of primitives, replaying their steps, and steps as text."""
