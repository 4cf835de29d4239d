"""Integer arithmetic on expressions: affine forms, simplification, and a prover of inequalities."""

# Other expressions and operations: nothing is concluded from them.
