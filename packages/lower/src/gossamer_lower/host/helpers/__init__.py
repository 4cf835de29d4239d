"""Functions that passes of this folder share."""
