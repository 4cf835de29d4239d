"""Arm SME: buffers in matrix registers, and the streaming mode in which they are used."""
