"""AVX-512: small buffers in vector registers, whose lanes are permuted."""
