"""Conditions of vector accesses."""
