"""Drivers of GPUs, and the protocol that they share."""
