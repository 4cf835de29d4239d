"""Tensors in parts of several formats, made by composable formats and by lists of formats."""
