"""Integer arithmetic on expressions: affine forms, simplification, proofs."""
