"""Math functions become arithmetic."""
