"""Recordings of conversions: made for one tensor, and replayed for others of its kind."""
