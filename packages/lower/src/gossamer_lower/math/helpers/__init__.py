"""Math functions as arithmetic: one module for each family; their coefficients are generated."""
