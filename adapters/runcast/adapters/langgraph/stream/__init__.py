"""The parts of a running LangGraph stream as AG-UI events."""
