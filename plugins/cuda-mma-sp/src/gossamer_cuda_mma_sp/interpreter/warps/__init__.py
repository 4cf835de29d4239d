"""Instructions that the lanes of warps and warpgroups execute together."""
