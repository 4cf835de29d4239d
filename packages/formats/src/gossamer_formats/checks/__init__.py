"""Checks that arrays form a valid tensor of a format."""
