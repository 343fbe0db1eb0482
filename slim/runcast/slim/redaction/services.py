"""The credentials of services that publish a prefix for them: one line each.

A line has the service, its prefixes as its documentation or its secret-scanning partner entry lists them, and the shape of
the rest. Lines of one shape become one form, so that a text is searched once for each shape. Does not know how a form is
searched.
"""

from __future__ import annotations

from collections.abc import Iterable

from runcast.slim.redaction.secret_pattern import RUN_CLASS, SecretPattern, prefixed

__all__ = ["SERVICES"]

WORD = r"[A-Za-z0-9]{20,}+"
DASHED = r"[A-Za-z0-9_-]{16,}+"
HEX = r"[0-9a-f]{32,}+"
UPPER = r"[A-Z0-9]{16}(?![A-Za-z0-9])"

# service, prefixes, shape. A prefix whose beginning is a common word is left out (`access_token$`, `dop_v1_`, `re_`): every
# such word at the end of a delta would be held.
_LINES: tuple[tuple[str, str, str], ...] = (
    # models
    ("OpenAI, Anthropic, OpenRouter, Langfuse", "sk-", DASHED),
    ("Groq", "gsk_", WORD),
    ("Hugging Face", "hf_", DASHED),
    ("LangSmith", "lsv2_pt_ lsv2_sk_", HEX),
    ("NVIDIA", "nvapi-", DASHED),
    ("xAI", "xai-", WORD),
    ("Perplexity, Tavily, Fireworks", "pplx- tvly- fw_", DASHED),
    # code hosts and package registries
    ("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", DASHED),
    ("GitLab", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent-", DASHED),
    ("Atlassian, Bitbucket", "ATATT3 ATCTT3 ATBB", DASHED),
    ("Artifactory", "AKCp", WORD),
    ("npm, PyPI, Docker", "npm_ pypi- dckr_pat_ rubygems_", DASHED),
    # chat and collaboration
    ("Slack", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", DASHED),
    ("Linear, Notion, Figma, Contentful, Postman", "lin_api_ lin_oauth_ ntn_ figd_ CFPAT- PMAK-", DASHED),
    # clouds and databases
    ("AWS", "AKIA ASIA", UPPER),
    ("Google", "AIza ya29. GOCSPX-", DASHED),
    ("Heroku, Netlify, Vercel, Pulumi", "HRKU- nfp_ vcp_ pul-", DASHED),
    ("Fly.io", "fm2_", r"[A-Za-z0-9+/=]{40,}+"),
    ("Supabase, Neon, PlanetScale", "sbp_ sb_secret_ napi_ pscale_tkn_ pscale_pw_ pscale_oauth_", DASHED),
    # payment and commerce
    ("Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_", r"[A-Za-z0-9]{10,}+"),
    ("Square", "sq0csp- sq0atp- EAAAE EAAAl", DASHED),
    ("Shopify", "shpat_ shpss_ shpca_ shppa_", HEX),
    # mail
    ("SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    ("Brevo", "xkeysib-", DASHED),
    ("Mailgun", "key-", HEX),
    # observability, secrets, networks
    ("Grafana", "glsa_ glc_", DASHED),
    ("New Relic, PostHog", "NRAK- phx_", WORD),
    ("Sentry", "sntrys_ sntryu_", DASHED),
    ("Vault", "hvs. hvb.", DASHED),
    ("Doppler", "dp.pt. dp.st. dp.ct. dp.sa.", WORD),
    ("1Password", "ops_", r"[A-Za-z0-9_-]{60,}+"),
    ("Tailscale", "tskey-", DASHED),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
)


def _forms(lines: Iterable[tuple[str, str, str]]) -> tuple[SecretPattern, ...]:
    shapes: dict[str, list[str]] = {}
    for _, prefixes, shape in lines:
        shapes.setdefault(shape, []).extend(prefixes.split())
    return tuple(prefixed(f"service {at}", heads, shape) for at, (shape, heads) in enumerate(shapes.items()))


# Addresses that let their reader post: the last part is the secret.
_HOOK = r"(?:hooks\.slack\.com/services/\w{1,20}/\w{1,20}/|discord(?:app)?\.com/api/webhooks/[0-9]{1,24}/|/IncomingWebhook/)"
_HOOK_SIGN = r"hooks\.slack\.com/services/|/api/webhooks/|/IncomingWebhook/"
WEBHOOK = SecretPattern(
    "webhook",
    form=rf"{_HOOK}(?P<secret>[A-Za-z0-9_-]{{16,}}+)",
    hint=_HOOK_SIGN,
    opening=rf"{_HOOK}(?={RUN_CLASS}*+\Z)",
    onset=_HOOK_SIGN,
    unbroken=True,
    sign=_HOOK_SIGN,
    marks=("slack.com/services", "api/webhooks", "incomingwebhook"),
)
SERVICES = (*_forms(_LINES), WEBHOOK)
