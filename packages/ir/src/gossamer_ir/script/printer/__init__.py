"""The printer, one module for each kind of node."""
