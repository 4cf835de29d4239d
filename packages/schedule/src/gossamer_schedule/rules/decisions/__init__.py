"""Decisions of rules, one file each: when it pays on a CPU, with the reason (`Verdict`), and its steps."""
