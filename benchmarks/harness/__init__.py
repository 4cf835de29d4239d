"""How is measured: interleaved rounds, foreign work, verification, the plan of a run."""
