"""The loop nest of an iteration: its loops, fused axes, and lookups of coordinates."""
