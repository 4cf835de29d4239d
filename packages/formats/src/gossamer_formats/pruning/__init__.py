"""The rules by which matrices are pruned to formats."""
