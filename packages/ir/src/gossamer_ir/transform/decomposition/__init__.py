"""Stores sparse tensors in parts of several formats (`decompose_format`)."""
