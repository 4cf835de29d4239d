"""Decisions for a machine and a matrix that rules, conversions and models of costs share.

Rules and conversions act on these decisions, and models estimate the times of the result. Neither imports the
other, so that what both must agree on is here.
"""
