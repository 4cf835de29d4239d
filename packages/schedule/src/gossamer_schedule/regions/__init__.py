"""Required and produced regions: the elements of a buffer that an iteration reads or writes."""

# Other expressions: nothing is concluded from them.
