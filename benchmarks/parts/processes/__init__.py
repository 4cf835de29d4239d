"""Programs that parts run in processes of their own, one file for each of these parts."""
