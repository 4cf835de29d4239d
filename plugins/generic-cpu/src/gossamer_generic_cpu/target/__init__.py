"""CPUs: which there are, which this machine has, and LLVM's view of one."""
