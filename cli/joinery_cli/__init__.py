"""The command line: plan, catalog, and what other packages add."""
