"""The hub's memory of its channels."""
