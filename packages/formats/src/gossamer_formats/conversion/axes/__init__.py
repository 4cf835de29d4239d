"""The axes of a target, built one after the other from the elements."""
