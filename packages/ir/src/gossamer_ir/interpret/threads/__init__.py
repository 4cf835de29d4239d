"""The threads of a grid: the one that runs, and the accesses of each of them."""
