"""Helpers over statements that passes of several folders use."""
