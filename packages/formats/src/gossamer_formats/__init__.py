"""Sparse tensors at run time: descriptions, storage, checks, conversion, input and output."""
