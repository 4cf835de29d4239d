"""When the init of a block runs, and which inits conflict."""
