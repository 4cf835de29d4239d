"""The threads of a grid: which of them runs, and what each of them has accessed."""
