"""The hub's faces: the `websockets` library, ASGI, the Pusher HTTP API."""
