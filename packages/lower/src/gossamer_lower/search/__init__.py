"""Searches are hoisted, merged and become loops."""
