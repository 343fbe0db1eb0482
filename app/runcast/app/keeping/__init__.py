"""How long threads are kept, and how they are forgotten on every node."""
