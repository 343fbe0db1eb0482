"""Older dialects of AG-UI, upgraded to 1.0."""
