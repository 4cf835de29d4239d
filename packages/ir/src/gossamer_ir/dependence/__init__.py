"""Whether different iterations touch different elements."""
