"""Facts about index arrays: their table, the index that finds them, the first violations in arrays."""
