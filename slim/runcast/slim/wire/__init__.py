"""Encodes and decodes events, one at a time and in streams."""
