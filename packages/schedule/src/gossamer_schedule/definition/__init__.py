"""The definition of primitives: the decorator, the checks of arguments and of results, and the names that steps make."""
