"""One module for each kind of generated file: its function `files` returns their contents."""
