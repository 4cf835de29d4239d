"""The vector form of expressions and statements."""
