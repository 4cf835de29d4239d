"""What `gossamer run` and `gossamer demo` run, check and time."""
