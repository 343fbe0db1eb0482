"""Removes secrets from events, values, texts and streams of deltas."""
