"""Addresses that let their reader post, call or report: their last part is the secret.

Knows the services' hosts and paths; tokens in queries are found by their names.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import RUN_CLASS, SecretPattern, any_of
from runcast.slim.redaction.secret_values import looks_random

# Each ends where the secret begins. `~` stands for one part of the path.
_HEADS = (
    *("hooks.slack.com/services/~/~/", "hooks.slack.com/workflows/~/~/", "hooks.slack.com/triggers/~/~/"),
    *(
        "/hooks/catch/~/",
        "/api/webhooks/~/",
        "/IncomingWebhook/",
        "/bot/v2/hook/",
        "/with/key/",
        "/api/webhook/",
    ),
    *(
        "quiknode.pro/",
        "infura.io/v3/",
        "infura.io/ws/v3/",
        "alchemy.com/v2/",
        "alchemy.com/v3/",
        "getblock.io/",
    ),
    *(
        "rpc.ankr.com/~/",
        "blastapi.io/",
        "api.day.app/",
        "hc-ping.com/",
        "healthchecks.io/ping/",
        "cronitor.link/p/",
    ),
    *(
        "simplepu.sh/",
        "simplepush.io/send/",
        "sctapi.ftqq.com/",
        "sc.ftqq.com/",
        "pushcut.io/",
        "pushplus.plus/send/",
    ),
    *(
        "/v1/heartbeat/",
        "api/push/",
        "make.com/",
        "integromat.com/",
        "trycourier.com/send/",
        "notify.run/",
        "techulus.com/api/v1/notify/",
    ),
    *(
        "api.hunter.io/v2/",
        "min-api/v2/",
        "v6.exchangerate-api.com/v6/",
        "api.darksky.net/forecast/",
        "thesportsdb.com/api/v1/json/",
    ),
    *(
        "/token/",
        "/keys/",
        "/_incoming_webhook/",
        "services.chat/hooks/",
        "/hooks/",
        "logs-01.loggly.com/inputs/",
        "in.logdna.com/logs/",
    ),
)
_PART = r"[\w.-]{1,40}/"
_HEAD = "(?:" + "|".join(re.escape(each).replace(r"\~/", "~/").replace("~/", _PART) for each in _HEADS) + ")"
_SIGNS = sorted({each.partition("~")[0] for each in _HEADS})
_SIGN = any_of(_SIGNS)


def _is_token(text: str) -> bool:
    """Whether the last part is made by a machine: long, or with digits."""
    value = text.rpartition("/")[2]
    if text.startswith(("/token", "/keys")):
        return looks_random(value) and len(value) > 19
    return len(value) > 15 or (
        any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not re.fullmatch(r"v\d+\w*", value)
    )


WEBHOOK = SecretPattern(
    "webhook",
    form=rf"{_HEAD}(?P<secret>(?=[A-Za-z_-]*[0-9]|[A-Za-z0-9_-]{{20}})[A-Za-z0-9_-]{{7,}}+)",
    hint=_SIGN,
    opening=rf"{_HEAD}(?={RUN_CLASS}*+\Z)",
    onset=rf"(?:{_SIGN}|/$)",  # each part before the secret ends in a slash
    check=_is_token,
    unbroken=True,
    sign=_SIGN,
    marks=tuple(each.lower() for each in _SIGNS),
)
