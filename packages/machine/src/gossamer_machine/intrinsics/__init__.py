"""The semantics of intrinsics that several targets have, and their operands."""
