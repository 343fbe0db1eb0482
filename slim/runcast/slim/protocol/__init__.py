"""The rules of a valid stream: which event may follow which."""
