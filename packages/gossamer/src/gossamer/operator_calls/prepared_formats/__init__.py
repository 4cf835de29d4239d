"""The formats in which a matrix is stored for its products, chosen once, and orders of its rows."""
