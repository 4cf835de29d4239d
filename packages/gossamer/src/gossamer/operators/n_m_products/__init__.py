"""What `matmul_24` is made of: its script, the choice of a form, and the products of the other forms."""
