"""Object code into the memory of this process."""
