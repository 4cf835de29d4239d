"""The gossamer backends for CPUs with scalable vectors: Arm SVE and RISC-V V."""
