"""How a run continues: from ADK's events to AG-UI events."""
