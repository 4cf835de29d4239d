"""Which library runs parallel regions, and one of our own."""
