"""Reductions: which terms may be combined in any order, and reductions in two stages."""

# Other statements: stay, or only their bodies change.
