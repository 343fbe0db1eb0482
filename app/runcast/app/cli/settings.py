"""The settings of a host: arguments override the environment (`RUNCAST_*`), which overrides the defaults.

Knows names, types and defaults; does not know what they do.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Settings(BaseSettings):
    """The settings a host starts with. An invalid value is an error with its name; an unknown variable is ignored."""

    model_config = SettingsConfigDict(env_prefix="RUNCAST_", extra="ignore")

    url: str = "sqlite:///runcast.db"  # where the log is kept
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)  # 0 takes any that is free
    role: Literal["web", "worker", "both"] = "both"  # serves watchers, runs agents, or both
    redis: str | None = None  # joins the hubs of several nodes; without it they follow the log
    broadcast: str | None = None  # a publisher besides the hub: reverb://…, redis://…
    preset: Literal["minimal", "standard", "debug"] = "standard"  # how much is broadcast
    secret: str | None = None  # the hub's signing key: the same on all nodes
    authorize: str | None = None  # module:function(user, thread id)
    identify: str | None = None  # module:function(headers)
    tenant: str | None = None  # module:function(user)
    cors: Annotated[tuple[str, ...], NoDecode] = ()  # origins of other pages, separated by commas
    redact: bool = True
    page: bool = True
    prices: dict[str, dict[str, float]] = {}  # JSON: by model, what a million tokens cost
    currency: str = "$"
    browser: bool = True  # open the page, if there are a terminal and a screen
    max_runs: int = Field(default=100, ge=1)
    max_body: int = Field(default=8_388_608, ge=1)
    keepalive: float = Field(default=15.0, gt=0)
    webhooks: str | None = None  # module:name of a list of webhooks, or of a function(tenant, thread id)
    # of this host as its users reach it: webhooks get links that answer, with `secret`
    public_url: str | None = None
    keep: str | None = None  # how long threads are kept, as 90d; or module:function(tenant, thread id)
    keep_raw: str | None = None  # how long ended runs keep every event, in the same form
    grace: float = Field(default=10.0, ge=0)  # seconds that active runs get at shutdown
    lease: float = Field(default=15.0, ge=0.1)  # seconds before a dead node's runs may be recovered
    recover: Literal["report", "continue", "off"] = "report"  # what becomes of runs whose process died
    recover_every: float = Field(default=5.0, gt=0)  # seconds between two searches for such runs
    log_format: Literal["text", "json"] = "text"  # of a line of the host's own log
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("cors", mode="before")
    @classmethod
    def _by_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(each.strip() for each in value.split(",") if each.strip())
        return value
