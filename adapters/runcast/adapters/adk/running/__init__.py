"""How a run is carried out: its runner, its place among the active runs, and the plugins that it brings."""
