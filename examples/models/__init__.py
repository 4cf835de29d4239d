"""Models for PyTorch on sparse data, with the operators of `gossamer_torch`; each file is a script."""
