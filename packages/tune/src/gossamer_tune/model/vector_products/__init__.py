"""The costs of products with a vector, a file for each format."""
