"""The command line; `main` is what the `runcast` script calls."""

try:  # once for all commands: no module of a package is imported before its package
    import typer as _typer
except ImportError as error:
    raise ImportError("for the command line, install runcast[cli]") from error

from runcast.app.cli.commands import main

del _typer

__all__ = ["main"]
