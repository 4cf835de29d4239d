"""Contents of `gossamer info`: properties of a matrix, and tables of them."""
