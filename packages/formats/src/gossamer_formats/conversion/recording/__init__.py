"""Plans of conversions: recorded for one tensor, and replayed for others of its kind."""
