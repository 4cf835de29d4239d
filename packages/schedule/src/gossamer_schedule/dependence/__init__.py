"""Which iterations touch the same elements, and whether they may trade places."""
