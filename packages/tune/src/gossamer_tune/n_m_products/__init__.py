"""The choice how a product with an N:M matrix is computed: models of bytes and operations."""
