"""Sizes and limits on which a rule for schedules or a conversion agrees with a model of costs."""
