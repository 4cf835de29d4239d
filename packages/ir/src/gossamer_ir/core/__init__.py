"""The ingredients of nodes: data types, constants, constructors; checks of arguments and index arrays."""
