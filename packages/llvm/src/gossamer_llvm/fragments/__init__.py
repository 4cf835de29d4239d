"""Buffers in matrix registers: tiles of Arm SME, in streaming mode."""
