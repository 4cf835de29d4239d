"""What nodes are made of: data types, constants, constructors, checked calls."""
