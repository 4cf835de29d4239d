"""Programs in the form in which rules look for patterns."""
