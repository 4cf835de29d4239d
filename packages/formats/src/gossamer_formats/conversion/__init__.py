"""Conversions between formats, derived from the two descriptions."""
