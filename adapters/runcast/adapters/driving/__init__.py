"""Drivers and bounded buffers between an adapter and a reader that may lag."""
