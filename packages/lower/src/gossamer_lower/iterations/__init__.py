"""Coordinate stage to position stage: sparse iterations become loops."""
