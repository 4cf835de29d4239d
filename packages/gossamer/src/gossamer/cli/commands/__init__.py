"""The commands, one file each; `cli/app.py` lists them."""
