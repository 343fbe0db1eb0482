"""Bounded snapshots of a thread, to show it and to resume it."""
