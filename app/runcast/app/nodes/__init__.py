"""Workers and web nodes that share a store: requests, handover, recovery."""
