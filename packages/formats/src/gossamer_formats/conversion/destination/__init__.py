"""The destination of a conversion: a format by name or description, its parameters, sizes, dtypes and map."""
