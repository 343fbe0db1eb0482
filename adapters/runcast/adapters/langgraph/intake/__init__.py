"""What a LangGraph run is asked to do, and what its client shows when it starts."""
