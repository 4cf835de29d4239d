"""Steps of schedules, with the names that they make: one primitive at a time, and tiles in registers."""
