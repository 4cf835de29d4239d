"""The record of a part, and fresh processes for the parts that measure in them."""
