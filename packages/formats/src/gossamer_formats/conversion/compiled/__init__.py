"""Conversions as programs of the language: loops over the elements of a storage, which a backend compiles."""
