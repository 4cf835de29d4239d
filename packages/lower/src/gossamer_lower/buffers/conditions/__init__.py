"""Conditions under which a position exists, and which of them are proved."""
