"""The three houses joined: runs that outlive the tab."""

from runcast.app.agents import EventFunction, as_adapter
from runcast.app.auth import Door
from runcast.app.cast import Cast
from runcast.app.errors import (
    AppError,
    BadRequest,
    Busy,
    Closing,
    Full,
    Gone,
    NotAllowed,
    NotFound,
    Over,
    Overtaken,
    TooLarge,
    WrongMedia,
    WrongMethod,
)
from runcast.app.http import App
from runcast.app.run import Cadence, Run, RunResult
from runcast.app.tokens import watch_token

__all__ = [
    "App",
    "AppError",
    "BadRequest",
    "Busy",
    "Cadence",
    "Cast",
    "Closing",
    "Door",
    "EventFunction",
    "Full",
    "Gone",
    "NotAllowed",
    "NotFound",
    "Over",
    "Overtaken",
    "Run",
    "RunResult",
    "TooLarge",
    "WrongMedia",
    "WrongMethod",
    "as_adapter",
    "watch_token",
]
