"""Whether it got worse: pure functions from two records to a verdict."""
