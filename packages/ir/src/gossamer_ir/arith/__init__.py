"""Integer arithmetic on expressions: affine forms, simplification, and a prover of inequalities."""
