"""What is kept of runs: the checkpoints of a graph, as they move to another store."""
