"""The definition of primitives: the decorator, its checks, and the names that steps make."""
