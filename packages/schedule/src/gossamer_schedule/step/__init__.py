"""Parts that all steps of a schedule share: their arguments, records and errors."""
