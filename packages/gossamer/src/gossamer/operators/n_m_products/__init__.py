"""The parts of `matmul_24`: its script, the choice of a form, and the products of the other forms."""
