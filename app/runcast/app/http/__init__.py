"""The host over HTTP: routes, JSON shapes, server-sent events, the page."""
