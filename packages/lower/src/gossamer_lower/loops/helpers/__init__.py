"""Copies of loop bodies."""
