"""Orders of the rows of a matrix, for the formats that store them in one."""
