"""How asv sees a case: benchmarks made from the suite, nothing else."""
