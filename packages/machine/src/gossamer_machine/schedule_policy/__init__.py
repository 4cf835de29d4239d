"""Decisions of default schedules and conversions for a machine and a matrix, for rules and models of costs.

Rules and conversions act on these decisions, and models estimate the times of what they choose. Neither
imports the other, so that a decision of both is here.
"""
