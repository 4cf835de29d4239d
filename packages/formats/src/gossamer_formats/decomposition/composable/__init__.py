"""The composable formats of the library, one file per format.

Each module has a function that returns the parts of a matrix, and a constant `FORMAT`."""
