"""Facts about index arrays: the table of them, the index that finds them, their first violations."""
