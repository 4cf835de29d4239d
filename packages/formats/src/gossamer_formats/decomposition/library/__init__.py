"""The composable formats of the library, one file each. Each has the constant `FORMAT`."""
