"""Plain values: JSON, text, patches and patterns; and the shapes and lifecycles of the protocol."""
