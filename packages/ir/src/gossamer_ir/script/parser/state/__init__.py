"""The state of the parser: names, blocks, functions and layouts that it has met."""
