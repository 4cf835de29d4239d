"""The definition of primitives: the decorator, the checks of its arguments, and the names that steps make."""
