"""The operators, one file each: what a user calls, and the custom operator with its gradient."""
