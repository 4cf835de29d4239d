"""What every emitter writes with: types, values, lines of a function."""
