"""Instructions that only one target has: a folder for each, whose `lowering.py` registers them."""
