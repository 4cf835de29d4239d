"""Changes of the programs of operators, one file each: a factor, and sums that are added to the output."""
