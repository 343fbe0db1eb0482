"""The cast: agents, runs, watchers and outlets of one process."""
