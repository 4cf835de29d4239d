"""Data that packages exchange: records, signatures, and their serialization."""
