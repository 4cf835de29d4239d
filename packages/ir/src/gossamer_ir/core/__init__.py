"""The ingredients of nodes: data types, constants, constructors, names, annotations, tables of kinds."""
