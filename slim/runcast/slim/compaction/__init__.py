"""Fewer events with the same effect, for any client or for one that joins late."""
