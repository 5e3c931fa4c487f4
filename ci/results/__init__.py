"""What a run and a gate leave behind, and how it is stored."""
