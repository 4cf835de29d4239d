"""The tools of all emitters: types, values, lines of a function."""
