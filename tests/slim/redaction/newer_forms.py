"""A third list of places of secrets, written before any rule for them; the words of its lines are explained in `more_forms.py`."""

from __future__ import annotations

from tests.slim.redaction.more_forms import PLACES, filled, lines_of

PREFIXED = r"""
AVNS_{W19} CCDB1_{B22}_{B40} xaat-{H8}-1a2b-4c3d-9e8f-{H12} xapt-{H8}-1a2b-4c3d-9e8f-{H12} mdb_sa_sk_{W40} oy2{L43}
waka_{H8}-1a2b-4c3d-9e8f-{H12} polar_oat_{B43} ucat_{U26} vtwn_{B32} zpka_{H32}_{H8} alcht_{B30} AKID{B32} AKLT{B44}
wrkus-{B40} sdk-{H8}-1a2b-4c3d-9e8f-{H12} signkey-prod-{H64} tr_dev_{B24} wandb_v1_{B60} pylf_v1_us_{B43} rnd_{B32}
mxb_{B40} nk-{W43} ls__{H32} esecret_{L26} persona_production_{W36} ctp_{B40} tss_{B36} rpa_{U40} essu_{B60}
secret-live-{W36} secret-test-{W36} access-production-{H8}-1a2b-4c3d-9e8f-{H12} sl.B{W130} ATTA{H64} IGQVJ{W120} y0_{W55}
t1.{W60} live_{B30} GOOG1E{U57} snyk_uat.{H8}.{W60} hcaik_{L58} SB-Mid-server-{W24} Mid-server-{W24} dt0s01.{U24}.{U64}
sk.eyJ1IjoiYWJjIiwiYSI6ImNqMTIzIn0.{W22} unkey_{B24} glrtr-{W20} glwt-{W20} vercel_blob_rw_{B16}_{B30} nyk_v0_{B50}
phs_{B43} pha_{B43} api_live.{W32} api_sandbox.{W32} shptka_{H32} shpua_{H32} xwfp-{B40} 00Dxx0000001gPF!{W96}
"""
NAMED = r"""
{"auths":{"ghcr.io":{"auth":"{B40}="}}}
spring.datasource.password={B14}
PGPASS={B14}
psk={B16}
'password' => env('DB_PASSWORD', '{B14}'),
req.Header.Set("X-Api-Token", "{B32}")
$env:AZURE_CLIENT_SECRET = "{B40}"
    environment:\n      - MYSQL_PASSWORD={B14}
postgresql+asyncpg://app:{B20}@db:5432/app
#access_token={B60}&token_type=bearer
http POST x Authorization:"Token {H40}"
aws configure set aws_secret_access_key {S40}
gh auth login --with-token {B40}
openssl rsa -passin pass:{B14}
use this token: {B40}
PIN code: {D4}
verification code: {D6}
"otp_code": "{D6}"
"client_assertion":"{B60}"
"ocp-apim-subscription-key": "{H32}"
Cookie: connect.sid=s%3A{B32}.{B43}
laravel_session={B40}
_gitlab_session={H32}
privateKey: "0x{H64}"
<sharedSecret>{B24}</sharedSecret>
vault login {B24}
Your password has been reset to {B12}
"""
HARMLESS = r"""
session: 5f0c2b, session=morning, "session": "550e8400-e29b-41d4-a716-446655440000"
the session lasted 2400 seconds and the verification code: see below
pin code: required
api-production-7d9f8c6b5-x2x4z is ready
test-case-number-12-for-the-live-reload-of-configuration
eu-sandbox-cluster-primary-node-pool-3 and my_live.reload_of_configuration_files
sdk-js, sdk-python and sdk-go
rnd_seed=42, waka_waka, ctp_print
psk: WPA2
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    forms = [filled(each, 500 + seed) for seed, each in enumerate(PREFIXED.split())]
    placed = [(PLACES[at % len(PLACES)].format(text), secret) for at, (text, secret) in enumerate(forms)]
    return [*placed, *(filled(each, 900 + seed) for seed, each in enumerate(lines_of(NAMED)))]


def harmless() -> list[str]:
    """Texts without a secret."""
    return lines_of(HARMLESS)
