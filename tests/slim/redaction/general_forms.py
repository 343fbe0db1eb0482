"""Secrets of services that no rule names, in places that no list before had: what the general rules are for. The words of its
lines are explained in `more_forms.py`."""

from __future__ import annotations

from tests.slim.redaction.more_forms import filled, lines_of

# A prefix that no rule knows; a name that no rule knows; a word near it; a table, a call, a statement, another language.
PLACED = r"""
qbx_{B32}
zz_live_{H32}
acme-key-{H8}-1a2b-4c3d-9e8f-{H12}
QUIRK_SECRET_{B40}
token = hx1_{B36}
QUIRKBASE={L32}
export DATA_HIVE="{B40}"
{"quirkbase": "{B32}", "timeout": 30}
quirkbase: {L40}
const quirk = "{B28}";
quirk := "{B28}"
opt => '{B32}',
MAILER_API='{H32}-us13'
userkey: {L32}
quirk_key={H8}-1a2b-4c3d-9e8f-{H12}
QUIRKKEY={H40}
"searchKey": "{B44}"
<quirkKey>{H40}</quirkKey>
- name: QUIRK_KEY\n  value: "{L28}"\n
variable "quirk_key" {\n  default = "{L32}"\n}
gh secret set QUIRK_TOKEN --body {B32}
quirk ACCESS {H32}
QUIRK PRIVATE {L32}
my quirk key ({api token}) {B32}
the quirk key is {B32}
Unseal Key 2: {S43}
**Quirk access token:** `{B32}`
| Quirk api key | `{L32}` |
| password | `{B12}` |
x.setRequestHeader('quirk-key', '{B32}')
QuirkClient("{B40}")
auth=('joe', '{B12}')
HTTPBasicAuth("joe", "{B12}")
getConnection(url, "root", "{B12}");
CREATE USER app IDENTIFIED BY '{B12}';
GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY '{B12}';
echo CREATE USER a IDENTIFIED WITH mysql_native_password BY {B12}
use joe and the password {B12}
log in as joe, pass {B12}A!
changed password from x to {B12}
ssh joe@h pw:{B12}
MYSQLPASS={B12}
bind_pw = {B12}
psk={B12}
mot de passe : {B12}
la contraseña es {B12}
a senha é {B12}
пароль: {B12}
密码是 {B12}
パスワード: {B12}
jwt:\n  secret: "{H32}" # of staging
api_key            = "{H32}"
curl -u joe:{B12} https://x.dev
htpasswd -bc f joe {B12}
"""
HARMLESS = r"""
"id": "call_a1B2c3D4e5F6g7H8i9J0k1L2"
"id": "msg_01XFDUDYJgAACzvnptvVoYELq2"
toolu_01A09q90qw90lq917835lq9X2
chatcmpl-9aB8cD7eF6gH5iJ4kL3mN2oP1qR0sT
"thread_id": "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
"run_id": "f3a29b7c1d8e4f60a5b9c8d7e6f50413"
commit: 3f786850e387550fdab836ed7e6dc881de23001b
BUILD_SHA=3f786850e387550fdab836ed7e6dc881de23001b
IMAGE=registry.acme.dev/team/app:2024-11-03-rc1
cache_key=user:17:profile:v2
primary_key: 6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
idempotency-key: 6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
public_key: UyhzI8JdNHlV3LyWJRofKMNI6VV0RJRmFS2OsJU94Ro=
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
etag: 5d8c72a5edda8d6a1b2c3d4e5f607182
nextCursor = "Qx7vT2kLm9Rp4Zs8Wd3Yb6Nc1H"
file_id: Qx7vT2kLm9Rp4Zs8Wd3Yb6Nc1H
href="/assets/index-4fG7hK2aQ9sD1zXcVbNm3K5p.js"
node_modules/.pnpm/react@18.2.0_4fg7hk2aq9sd1zxcvbnm3k5p/index.js
model: claude-3-5-sonnet-20241022
model = "gpt-4o-mini-2024-07-18"
quirk: meta-llama/Llama-3.1-8B-Instruct
self.api_key = api_key
password=password,
password: FilterOrBool = False
jwt: "JWT"
headers: { Authorization: "Bearer token" }
errors.password: "must be at least 8 characters long"
id-token: required
the password sha256 hash
pass the arguments on
a clave is a rhythm, and a parola is a word
the access road, a private matter, the key to it all
credentials:\n  username: joe
login(user, password)
auth=(user, password)
Client(config)
client("production")
identified by its name
docker run -u root:root x
chown -R node:node /app
| key | value |
| token | what it is for |
| password | at least 8 characters |
translation key: common.buttons.save_and_continue
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    lines = lines_of(PLACED.replace("({api token})", "(api token)"))
    return [filled(each, 2_000 + seed) for seed, each in enumerate(lines)]


def harmless() -> list[str]:
    """Texts without a secret."""
    return lines_of(HARMLESS)
