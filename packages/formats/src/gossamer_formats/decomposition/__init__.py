"""Tensors in parts of several formats: composable formats such as `hyb`, and lists of formats."""
