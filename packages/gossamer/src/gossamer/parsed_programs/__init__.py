"""The modules of the scripts of operators, one file each, as Python code that is generated."""
