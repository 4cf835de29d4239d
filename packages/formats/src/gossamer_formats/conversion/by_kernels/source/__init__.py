"""The loops over the elements of a source, and the order in which they visit these."""
