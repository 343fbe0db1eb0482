"""Adapters, log and broadcast joined: runs that outlive the tab."""

from typing import TYPE_CHECKING

from runcast.slim.on_demand import on_demand

if TYPE_CHECKING:
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
        TooSlow,
        WrongMedia,
        WrongMethod,
    )
    from runcast.app.host.agent_adapters import as_adapter
    from runcast.app.host.cast import Cast
    from runcast.app.host.event_function import EventFunction
    from runcast.app.http.asgi_app import App
    from runcast.app.http.page import PageOptions
    from runcast.app.runs.handle import RunHandle, RunResult
    from runcast.app.runs.run import Cadence, Run
    from runcast.app.tenants.access_policy import AccessPolicy
    from runcast.app.tenants.tokens import watch_token
    from runcast.app.webhooks.answer_links import AnswerLinks
    from runcast.app.webhooks.webhook import Webhook
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "errors": "AppError BadRequest Busy Closing Full Gone NotAllowed NotFound Over Overtaken TooLarge TooSlow WrongMedia WrongMethod",
            "host.agent_adapters": "as_adapter",
            "host.cast": "Cast",
            "host.event_function": "EventFunction",
            "http.asgi_app": "App",
            "http.page": "PageOptions",
            "runs.handle": "RunHandle RunResult",
            "runs.run": "Cadence Run",
            "tenants.access_policy": "AccessPolicy",
            "tenants.tokens": "watch_token",
            "webhooks.answer_links": "AnswerLinks",
            "webhooks.webhook": "Webhook",
        },
    )

__all__ = [
    "AccessPolicy",
    "AnswerLinks",
    "App",
    "AppError",
    "BadRequest",
    "Busy",
    "Cadence",
    "Cast",
    "Closing",
    "EventFunction",
    "Full",
    "Gone",
    "NotAllowed",
    "NotFound",
    "Over",
    "Overtaken",
    "PageOptions",
    "Run",
    "RunHandle",
    "RunResult",
    "TooLarge",
    "TooSlow",
    "Webhook",
    "WrongMedia",
    "WrongMethod",
    "as_adapter",
    "watch_token",
]
