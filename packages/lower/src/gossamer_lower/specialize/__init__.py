"""Specialization: arrays replaced by known values, unused parameters removed."""
