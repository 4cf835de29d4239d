"""Arguments of calls in a text, names that were declared, constants, and dtypes of literals."""
