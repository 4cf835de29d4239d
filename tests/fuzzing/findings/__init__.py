"""Reduces failing programs, and prints them."""
