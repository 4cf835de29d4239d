"""How programs are compiled and run: a compiler as data, and an interpreter that detects races."""
