"""What the passes of this folder share."""
