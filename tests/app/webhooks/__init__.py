"""Tests of webhooks and of links that answer."""
