"""What `gossamer info` shows: properties of a matrix, and tables of them."""
