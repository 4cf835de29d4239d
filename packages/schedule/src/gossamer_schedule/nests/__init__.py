"""The loop nests of blocks, and where the inits of reductions run."""
