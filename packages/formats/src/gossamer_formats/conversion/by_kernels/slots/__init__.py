"""The slots of elements in fibers."""
