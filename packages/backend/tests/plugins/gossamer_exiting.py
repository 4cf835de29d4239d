"""A plugin that leaves the process when it is imported."""

raise SystemExit("no licence")
