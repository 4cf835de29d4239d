"""The formats of files that tensors are read from and written to, one file per format."""
