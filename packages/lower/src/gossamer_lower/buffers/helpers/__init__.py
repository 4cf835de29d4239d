"""Ordinary buffers, facts and conditions that replace sparse buffers and their axes."""
