"""Changes of the programs of operators, one file each: a factor, added sums, whole blocks."""
