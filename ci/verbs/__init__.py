"""One module a verb of the command line; each returns an exit code."""
