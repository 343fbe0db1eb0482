"""The command line; `main` is what the `runcast` script calls."""

from runcast.app.cli.commands import main

__all__ = ["main"]
