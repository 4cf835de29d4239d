"""The measurement: interleaved rounds, detection of foreign work, verification, the plan of a run."""
