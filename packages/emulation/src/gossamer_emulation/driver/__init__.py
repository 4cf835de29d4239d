"""The program of the emulated process."""
