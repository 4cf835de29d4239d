"""Random programs of the position, loop and flat stage, with their arguments."""
