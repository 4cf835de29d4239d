"""Primitives that change annotations and declared regions, not what a program computes."""
