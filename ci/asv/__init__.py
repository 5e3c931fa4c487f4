"""The entry point for asv: what asv loads and calls where people call the command line."""
