"""The public functions that take programs, one file each."""
