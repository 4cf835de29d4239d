"""Orders of the rows of a matrix in which neighbors have columns in common."""
