"""The modules of the scripts of operators and of checks of index arrays, as generated Python code,
one file each."""
