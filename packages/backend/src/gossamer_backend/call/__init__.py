"""The call protocol: the ABI of kernels, kernels that Python can call, prepared calls, threads."""
