"""The parts of a run, one file each with a record `PART`; `run_parts.ORDERED_PARTS` lists them."""
