"""The expected results of a program of the coordinate stage, computed by NumPy alone."""
