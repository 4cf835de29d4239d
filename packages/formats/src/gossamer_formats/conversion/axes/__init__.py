"""The slots of elements along the axes of a target."""
