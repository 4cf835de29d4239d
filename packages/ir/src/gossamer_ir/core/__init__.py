"""The ingredients of nodes: data types, constants, constructors, and argument checks."""
