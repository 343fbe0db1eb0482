"""Entries mapped to compact envelopes, rolled up, bounded and queued."""
