"""Stores: the places where threads are kept. A database's file is imported when its URL is opened."""

from __future__ import annotations

from runcast.slim.stores.base import Store, Watch
from runcast.slim.stores.memory import MemoryStore
from runcast.slim.stores.records import Note
from runcast.slim.stores.url import open_store

__all__ = ["MemoryStore", "Note", "Store", "Watch", "open_store"]
