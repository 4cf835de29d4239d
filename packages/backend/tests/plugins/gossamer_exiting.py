"""A plugin that exits the process when it is imported."""

raise SystemExit("no license")
