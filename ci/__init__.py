"""Whether a kernel got worse: devices, checks, records, the gate and the command line."""
