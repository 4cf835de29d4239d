"""Schedule primitives, traces and the rules for default schedules."""
