"""Decisions that only machines with scalable vectors need."""
