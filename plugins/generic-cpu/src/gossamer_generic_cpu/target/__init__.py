"""Target CPUs: this machine's, those with names, and their descriptions in LLVM."""
