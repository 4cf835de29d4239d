"""Whether arrays make a tensor of a format."""
