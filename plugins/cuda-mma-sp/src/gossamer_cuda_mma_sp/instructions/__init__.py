"""Matrix instructions of GPUs: tables of those that exist, and the registers of their operands."""
