"""One run in this process: its life, its slot, its answers, its handle."""
