"""The parts of a run, one file each with a record `PART`; `benchmarks/ordered_parts.py` lists them."""
