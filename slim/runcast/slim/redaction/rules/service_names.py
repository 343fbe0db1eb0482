"""Keys beside the name of a service: `datadog: 3f2a…`, `algoliasearch("APP", "3f2a…")`, "the Deepgram key: 3f2a…".

Their keys are hexadecimal numbers, UUIDs or bare random characters, which elsewhere are ids and hashes. Only services of
which this is known are listed, and only names that are no common word. Does not know keys with a prefix: those are in
`services.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.secret_pattern import SecretPattern, any_of
from runcast.slim.redaction.secret_values import is_uuid, looks_random

# By what they are for; from the documents of connectors, notifiers, DNS clients and scanners.
_ROWS = (
    "datadog newrelic honeycomb rollbar bugsnag pagerduty opsgenie pingdom uptimerobot statuscake logdna",
    "loggly papertrail logzio sumologic splunk dynatrace instana raygun airbrake honeybadger lightstep",
    "librato signalfx victorops statsig mixpanel amplitude kissmetrics fullstory hotjar posthog plausible",
    "matomo appsflyer algolia typesense meilisearch openweather newsapi alphavantage finnhub polygonio",
    "tiingo coinmarketcap coinapi coingecko cryptocompare etherscan bscscan infura alchemy quicknode",
    "ipstack ipinfo ipgeolocation mapbox tomtom geoapify opencage locationiq maptiler positionstack",
    "weatherbit weatherapi tomorrowio accuweather themoviedb tmdb giphy unsplash pexels pixabay",
    "spoonacular edamam yelp deepgram assemblyai elevenlabs deepl speechmatics murf playht wolframalpha",
    "clarifai serpapi serper scrapingbee scraperapi brightdata apify diffbot browserless zenrows",
    "stabilityai runpod cohere mistral deepseek openrouter twilio nexmo vonage plivo messagebird",
    "clicksend textmagic telnyx sinch infobip clickatell mailchimp mailgun mailjet postmark sparkpost",
    "sendinblue mandrill elasticemail mailerlite convertkit klaviyo onesignal pushover pushbullet zendesk",
    "freshdesk freshservice intercom hubspot pipedrive helpscout trello clickup wrike basecamp toggl",
    "airtable jotform typeform surveymonkey calendly eventbrite zoominfo clearbit rapidapi abstractapi",
    "cloudflare fastly bunnycdn digitalocean linode vultr hetzner scaleway godaddy namecheap namesilo",
    "dnsimple gandi porkbun dreamhost hostinger constellix desec duckdns dynu luadns netlify cloudinary",
    "imgix uploadcare imagekit transloadit codecov coveralls codacy codeclimate snyk sonarqube sonarcloud",
    "circleci travis buildkite appveyor bitrise launchdarkly configcat contentful storyblok sanityio",
    "prismic ghostcms shodan censys virustotal abuseipdb urlscan greynoise haveibeenpwned securitytrails",
    "spotify lastfm discogs soundcloud flickr vimeo dailymotion twitch strava fitbit braintree chargebee",
    "recurly paystack razorpay mollie adyen coinbase kraken bitfinex binance kucoin bitmex docusign",
    "pandadoc hellosign shipstation easypost shippo aftership taxjar quickbooks freshbooks xero segmentio",
    "customerio pinecone weaviate qdrant zilliz rockset snowflake databricks influxdb upstash firebase",
    "pusher ably pubnub livekit agora wandb clearml huggingface roboflow langsmith langfuse helicone",
    "braintrust todoist raindrop instapaper sentry jenkins gotify artifactory okta auth0 zabbix proxmox",
    "portainer nextcloud homeassistant sonarr radarr lidarr prowlarr jellyfin emby tautulli overseerr",
    "bazarr sabnzbd syncthing adguard pihole octoprint immich grafana trakt opensubtitles fanarttv",
    "thetvdb realdebrid alldebrid ifttt civo exoscale gcore ionos inwx loopia netcup njalla ovh rackspace",
    "transip ultradns websupport zonomi selectel timeweb rcodezero alpaca bybit okx bitstamp oanda",
    "tradier quandl marketstack currencylayer weatherstack visualcrossing wunderground mapquest",
    "graphhopper openrouteservice smtp2go sendpulse moosend getresponse activecampaign campaignmonitor",
    "omnisend aweber mailtrap bestdns lokalise crowdin phraseapp deepai perplexity",
    "equinix logentries scalyr sematext site24x7 checkly cronitor betterstack betteruptime lago",
    "chargify gocardless squareup plaid yodlee onfido sumsub jumio trulioo fullcontact lusha snovio",
    "uplead kickbox neverbounce zerobounce debounce emailable apilayer numverify ipapi",
    "ipdata ipregistry proxycurl algoliasearch bestbuy walmart etsy ebay mondayapi smartsheet kustomer",
    "gorgias tawk",
)
_NAMES = [name for row in _ROWS for name in row.split()]
# What one of these words stands before is an id or a hash, also where the service's name is beside it.
_PUBLIC_ROWS = (
    "id uuid guid commit sha sha1 sha256 md5 hash digest checksum rev revision trace span request event",
    "run ray zone page issue release account sid project org organization team user customer order",
    "invoice message ticket session container instance build job deployment version tag image file",
    "document record database dataset table board card task tenant subscription workspace site index etag",
    "fingerprint signature nonce tx transaction block public cursor monitor dashboard incident alert",
    "contact campaign channel room conversation",
)
_PUBLIC = [word for row in _PUBLIC_ROWS for word in row.split()]
_PUBLIC_WORD = re.compile(
    rf"(?i:(?<![a-z])(?:{'|'.join(_PUBLIC)})s?(?![a-z]))|(?:[a-z](?:Id|Uuid|Hash|Sid|Ref)|_id|_hash)\b"
)


_NAME = f"(?i:{any_of(_NAMES)})"
# No letter before it, but the small one of `MyDatadog`.
_EDGE = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
# What may stand between: the rest of the identifier, an operator, up to two short words.
_WORD = r"[A-Za-z0-9_]"
_OTHER = r"(?:[^A-Za-z0-9_\n]{1,4}|:\n\s{0,8})"
_BETWEEN = rf"(?:[A-Z0-9_]{_WORD}{{0,15}})?(?:{_OTHER}{_WORD}{{1,12}}){{0,2}}?"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_RUN = r"[A-Za-z0-9+/_-]"

_PLACE = re.compile(r"(?:^|/)(?:[a-z]{2,}|v\d)/")


def _is_key(text: str) -> bool:
    """Whether the value is hexadecimal, a UUID or random, and no word before it makes it an id."""
    value = re.split(r"[^\w+/=-]", text)[-1]
    before = text[: len(text) - len(value)]
    made = (
        re.fullmatch(r"(?=[a-f]*[0-9])[0-9a-f]{32,}", value) is not None
        or is_uuid(value)
        or looks_random(value)
    )
    return (
        made
        and _PLACE.search(value) is None
        and before[-1:] not in "/@#-"
        and "://" not in before
        and _PUBLIC_WORD.search(before) is None
    )


SERVICE_NAME = SecretPattern(
    "service name",
    form=rf"{_EDGE}{_NAME}{_BETWEEN}{_OTHER}(?P<secret>{_UUID}|{_RUN}{{24,200}}+={{0,2}})(?![.\w@=])",
    hint=_NAME,
    besides=rf"[0-9]{_RUN}{{12}}|{_RUN}{{12}}[0-9]|[0-9a-f]{{8}}-[0-9a-f]{{4}}-",  # it has a digit, or is a UUID
    opening=rf"{_EDGE}{_NAME}(?:{_BETWEEN}(?:{_OTHER}(?P<secret>{_RUN}*+={{0,2}}))?|(?:[A-Z0-9_]{_WORD}{{0,15}})?)\Z",
    onset=rf"{_NAME}",
    check=_is_key,
    sign=_NAME,
    marks=tuple(_NAMES),
    apart=True,
)
