"""Properties of a matrix that are computed in one pass over a sample of its rows."""
