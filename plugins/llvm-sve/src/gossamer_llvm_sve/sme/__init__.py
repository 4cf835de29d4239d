"""Products of blocks by the outer products of SME."""
