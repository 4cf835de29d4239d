"""Pictures of matrices: `spy`, the elements of each part, and the pixels that they fall into."""
