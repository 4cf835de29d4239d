"""The kinds of axes, one file each."""
