"""Schedules of conversions: their programs begin as loops of the loop stage, which no rule matches."""
