"""Faults put in by hand, to see which tests notice them: `make mutants`."""
