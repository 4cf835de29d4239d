"""What a conversion is asked for: a format by name or description, its parameters, sizes and dtypes."""
