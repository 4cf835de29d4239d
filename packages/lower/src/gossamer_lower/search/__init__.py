"""Searches are hoisted, merged and become loops."""

# Other statements: stay, or only their bodies change.
# Other expressions: not optimized.
