"""Motion of blocks and loops: blocks into other loops or into expressions, loops past each other."""
