"""Libraries that run parallel regions, and one of our own."""
