"""Hints for names that other compilers use: their counterparts in gossamer, one table for each compiler."""
