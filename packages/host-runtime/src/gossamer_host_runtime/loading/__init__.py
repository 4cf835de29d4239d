"""Load object code into the memory of this process."""
