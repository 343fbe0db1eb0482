"""The credentials of services that publish a prefix for them: one line each.

A line has the service, its prefixes as its documentation or its secret-scanning partner entry lists them, and the shape of
the rest. Lines of one shape become one form, so that a text is searched once for each shape. Does not know how a form is
searched.
"""

from __future__ import annotations

from collections.abc import Iterable

from runcast.slim.redaction.secret_pattern import SecretPattern, prefixed

WORD = r"[A-Za-z0-9]{20,}+"
DASHED = r"[A-Za-z0-9_-]{16,}+"
MADE = r"(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{32,}+"  # behind a prefix that is a word
BASE64 = r"[A-Za-z0-9+/=_-]{40,}+"
SLASHED = r"[A-Za-z0-9+/=_-]{16,}+"
DOTTED = r"[A-Za-z0-9_.-]{16,}+"
HEX = r"[0-9a-fA-F]{32,}+"
UPPER = r"[A-Z0-9]{16}(?![A-Za-z0-9])"

# service, prefixes, shape. A prefix whose beginning is a common word is left out (`access_token$`, `re_`): every such word at
# the end of a delta would be held. `INFIX` has what stands between such words.
_LINES: tuple[tuple[str, str, str], ...] = (
    # models
    ("OpenAI, Anthropic, OpenRouter, Langfuse", "sk- csk-", DASHED),
    ("Groq", "gsk_", WORD),
    ("Hugging Face", "hf_", DASHED),
    ("LangSmith", "lsv2_pt_ lsv2_sk_", HEX),
    ("NVIDIA", "nvapi-", DASHED),
    ("xAI", "xai-", WORD),
    ("Perplexity, Tavily, Fireworks, Jina, Replicate", "pplx- tvly- fw_ jina_ r8_", DASHED),
    ("Pinecone, E2B, Firecrawl", "pcsk_ e2b_ fc-", DASHED),
    ("Voyage, Nomic, Truffle", "pa- nk- thog-key-", MADE),
    ("Logfire, Weights & Biases, Mixedbread, LangSmith", "pylf_v wandb_v mxb_ ls__", DASHED),
    ("RunPod, Anyscale", "rpa_ esecret_", WORD),
    ("Amazon MWS", "amzn.mws.", r"[0-9a-f-]{24,}+"),
    (
        "LlamaCloud, Adafruit, Ionic, Dependency-Track, crates.io",
        "llx- aio_ ion_ odt_ cio",
        r"(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{24,}+",
    ),
    # code hosts and package registries
    ("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", DASHED),
    (
        "GitLab",
        "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- glffct- glimt- gloas- GR1348941",
        DOTTED,
    ),
    ("Atlassian, Bitbucket", "ATATT3 ATCTT3 ATBB BBDC-", SLASHED),
    ("Artifactory", "AKCp cmVmd", WORD),
    ("npm, PyPI, Docker", "npm_ pypi- dckr_pat_ dckr_oat_ rubygems_", DASHED),
    ("Clojars, CircleCI, Sourcegraph, Readme, Infracost", "CLOJARS_ CCIPAT_ sgp_ rdme_ ico-", MADE),
    ("GitLab, PostHog", "glrtr- glwt- phs_ pha_", DASHED),
    ("WakaTime, Thunderstore, Chief Tools, Val Town", "waka_ tss_ ctp_ vtwn_", DASHED),
    ("NuGet", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("Snyk", "snyk_", r"[a-z]{3}\.[A-Za-z0-9_.-]{16,}+"),
    ("Prefect, Scalingo, Harness, OpenShift", "pnu_ tk-us- pat. sat. sha256~", DOTTED),
    # chat and collaboration
    ("Slack", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", DASHED),
    ("Slack, Dropbox, Nylas", "xwfp- sl.B sl.u nyk_v0_", DASHED),
    ("Docker", "SWMTKN-1-", DASHED),
    ("Trello, Instagram", "ATTA IGQV", r"[A-Za-z0-9_-]{60,}+"),
    (
        "Linear, Notion, Figma, Contentful, Postman",
        "lin_api_ lin_oauth_ ntn_ figd_ figp_ CFPAT- PMAK-",
        DASHED,
    ),
    (
        "Notion, Typeform, Hubspot, Frame.io, Voiceflow",
        "secret_ tfp_ pat-eu1- pat-na1- fio-u- VF.DM. VF.WS.",
        r"(?=[A-Za-z_.-]*+[0-9])[A-Za-z0-9_.-]{32,}+",
    ),
    # clouds and databases
    ("AWS", "AKIA ASIA ABIA ACCA", UPPER),
    ("AWS Bedrock", "ABSK", BASE64),
    ("Alibaba, Yandex, Adobe", "LTAI AQVN p8e-", DASHED),
    ("Cloudflare", "cfut_ cfat_ cfk_", WORD),
    ("Cloudflare", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{64,}+"),
    ("Databricks, Buildkite, ElevenLabs", "dapi bkua_ sk_", r"[0-9a-z]{32,}+"),
    ("Defined Networking", "dnkey-", MADE),
    ("Google", "AIza ya29. GOCSPX-", DASHED),
    ("Heroku, Netlify, Vercel, Pulumi", "HRKU- nfp_ vcp_ pul-", DASHED),
    ("Fly.io", "fm2_ fm1r_ fm1a_ fo1_", BASE64),
    ("Tencent, Volcengine, Google", "AKID AKLT GOOG1E", r"(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{32,}+"),
    ("Render, UpCloud, Vercel, Zuplo", "rnd_ ucat_ vercel_blob_rw_ zpka_", DASHED),
    ("Mapbox, Tinybird, Workato", "sk.eyJ p.eyJ wrkus- wrkeu- wrkjp- wrkau- wrksg-", DOTTED),
    ("Yandex", "y0_ t1.", r"[A-Za-z0-9_-]{50,}+"),
    ("Aiven, CockroachDB, MongoDB, Xata, NetBird", "AVNS_ CCDB1_ mdb_sa_sk_ xau_ nbp_", DASHED),
    ("Supabase, Neon, PlanetScale", "sbp_ sb_secret_ napi_ pscale_tkn_ pscale_pw_ pscale_oauth_", DASHED),
    # payment and commerce
    (
        "Stripe",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ whsec_",
        r"[A-Za-z0-9]{10}[A-Za-z0-9_-]*+",
    ),
    ("Square", "sq0csp- sq0atp- sqco_", DASHED),
    ("Facebook, Square", "EAA", r"[A-Za-z0-9_-]{50,}+"),
    ("Flutterwave, EasyPost", "FLWSECK- FLWSECK_TEST- EZAK EZTK", DASHED),
    ("Shopify", "shpat_ shpss_ shpca_ shppa_ shptka_ shpua_", HEX),
    ("Polar, Alchemy, Unkey, Midtrans", "polar_oat_ alcht_ unkey_ SB-Mid- Mid-server-", DASHED),
    # mail
    ("SendGrid", "SG.", r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    ("Brevo", "xkeysib-", DASHED),
    ("Mailgun", "key-", r"(?=[a-z]*+[0-9])[0-9a-z]{32}(?![0-9A-Za-z-])"),
    ("MailerSend", "mlsn.", HEX),
    # observability, secrets, networks
    ("Grafana", "glsa_", DASHED),
    ("New Relic", "NRAK-", WORD),
    ("PostHog, Sonar", "phx_ sqp_ squ_ sqa_", DASHED),
    ("New Relic, Netlify, Akamai, Postman", "NRII- NRIQ- NRJS- NRBR- NF- akab- PMAT-", DASHED),
    ("Dynatrace", "dt0c01. dt0s01. dt0s16.", DOTTED),
    ("Axiom, Honeycomb, Elastic, Inngest", "xaat- xapt- hcaik_ hcamk_ essu_ signkey-", MADE),
    ("LaunchDarkly", "sdk-", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("Rootly, incident tools", "rootly_ shltm_ slk_", MADE),
    ("Buildkite, Datadog, Red Hat", "bb_pr_ bb_ma_ ddp_ ddw_ rh-api- gcntfy-", DASHED),
    ("Sentry, Grafana", "sntrys_ sntryu_ glc_", BASE64),
    ("Vault", "hvs. hvb.", DASHED),
    ("Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", DOTTED),
    ("1Password", "ops_eyJ", BASE64),
    ("1Password", "A3-", r"[A-Z0-9]{6}-[A-Z0-9-]{20,}+"),
    ("42", "s-s4t2ud- s-s4t2af- u-s4t2ud- u-s4t2af-", HEX),
    ("Tailscale", "tskey-", DASHED),
    ("BIP 32", "xprv yprv zprv", r"[A-Za-z0-9]{60,}+"),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
    # A private key in base64: `-----BEGIN `, perhaps a kind, and `PRIVATE`.
    (
        "PEM",
        "LS0tLS1CRUdJTiBQUklWQVRF LS0tLS1CRUdJTiBSU0EgUFJJVkFURS LS0tLS1CRUdJTiBFQyBQUklWQVRF LS0tLS1CRUdJTiBPUEVOU1NI",
        BASE64,
    ),
)


def _forms(lines: Iterable[tuple[str, str, str]]) -> tuple[SecretPattern, ...]:
    shapes: dict[str, list[str]] = {}
    for _, prefixes, shape in lines:
        shapes.setdefault(shape, []).extend(prefixes.split())
    return tuple(prefixed(f"service {at}", heads, shape) for at, (shape, heads) in enumerate(shapes.items()))


# DigitalOcean, Duffel, Razorpay, Shippo, Apify, Ramp, Together, SettleMint: a word of their own, and what kind it is.
INFIX = prefixed(
    "infix",
    ("_live_", "_prod_", "_v1_", "_api_", "_org_", "_aat_", "_pat_", "_sat_", "_sec_"),
    r"(?:(?=[0-9]*+[A-Za-z])(?=[A-Za-z]*+[0-9])[A-Za-z0-9]{14,}+|[A-Za-z0-9]{36,}+|(?=[A-Za-z_-]*+[0-9])(?=[a-z0-9_-]*+[A-Z])[A-Za-z0-9_-]{32,}+)",
    inside=True,
)
# Onfido, Plaid, Stytch, Persona: the kind stands between a word and the rest.
STAGE = prefixed(
    "stage",
    (
        "-production-",
        "-sandbox-",
        "-live-",
        "-test-",
        "_production_",
        "_sandbox_",
        "_live.",
        "_sandbox.",
        "_dev_",
    ),
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[A-Za-z_-]*+[0-9])(?=[a-z0-9_-]*+[A-Z])[A-Za-z0-9_-]{24,}+)",
    inside=True,
)
TERRAFORM = prefixed("terraform", (".atlasv1.",), r"[A-Za-z0-9_-]{31,}+", inside=True)
TELEGRAM = SecretPattern(
    "telegram",
    form=r"[0-9](?<![0-9][0-9])[0-9]{7,9}:(?P<secret>AA[A-Za-z0-9_-]{31,}+)",
    hint=r"[0-9]:AA",
    opening=r"(?<![0-9])[0-9]{8,10}:(?P<secret>(?:A|AA[A-Za-z0-9_-]*+)?)\Z",
    onset=r"(?:[0-9]:AA|:A?$)",
    sign=r"[0-9]:(?:A|$)",
    marks=(":aa",),
)
SERVICES = (*_forms(_LINES), INFIX, STAGE, TERRAFORM, TELEGRAM)
