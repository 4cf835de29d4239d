"""Hook specifications, plugin registry, artifacts, caches, kernels and their call protocol."""
