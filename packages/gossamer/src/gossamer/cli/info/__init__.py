"""What `gossamer info` shows: features of a matrix, and tables of them."""
