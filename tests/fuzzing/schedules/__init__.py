"""Random legal schedules and steps."""
