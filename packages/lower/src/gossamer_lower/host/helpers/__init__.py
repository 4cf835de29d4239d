"""What passes of this folder share."""
