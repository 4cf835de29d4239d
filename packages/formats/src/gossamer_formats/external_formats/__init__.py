"""The formats of other libraries and files that have the elements of a format here in the same order."""
