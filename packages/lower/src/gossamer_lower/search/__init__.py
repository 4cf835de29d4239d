"""Searches are hoisted, merged and become loops."""

# Other expressions: not optimized.
