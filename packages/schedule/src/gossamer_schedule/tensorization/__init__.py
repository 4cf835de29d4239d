"""Loop nests that become blocks, and blocks that become intrinsics of a machine."""
