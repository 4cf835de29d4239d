"""What all steps of a schedule have in common: their arguments, records and errors."""
