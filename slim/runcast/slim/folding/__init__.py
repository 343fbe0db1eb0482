"""Folds events into the conversation that they describe."""
