"""How a run begins: from an input and a session to the runner's arguments."""
