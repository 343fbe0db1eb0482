"""More places of secrets and more harmless texts, in words of their own: from what scanners of repositories publish about
prefixes, and from how credentials stand in logs, shells, manifests and programs.

`{W22}` stands for a made value: its alphabet and length; the first one is the secret. `\\n` is a line break.
"""

from __future__ import annotations

import re
import string

from tests.slim.redaction.forms import B64, DIGITS, HEX, UPPER, URL, made

ALPHABETS = {
    "B": B64,
    "D": DIGITS,
    "H": HEX,
    "U": UPPER,
    "W": URL,
    "S": B64 + "+/",
    "L": string.ascii_lowercase + DIGITS,
}
PLACES = (
    "{}",
    "export X={}",
    "the agent printed {} and went on",
    "'{}',",
    'call("{}")',
    "- {}\n",
    '{{"value": "{}"}}',
    "({})",
)

PREFIXED = r"""
ab1c2d3e4f5g6h.atlasv1.{W62} lsv2_sk_{H32}_{H10} rk_test_{B24}
A3-{U6}-{U11}-{U5}-{U5}-{U5} ops_eyJ{S250} p8e-{L32} AGE-SECRET-KEY-1{U58} LTAI{B20} sk-ant-admin01-{W93}
sk-ant-api03-{W93} AKCp{B69} cmVmd{B59} AKIA{U16} ABIA{U16} ACCA{U16} ASIA{U16} ABSK{S120} 4b1d{B38} CLOJARS_{L60}
v1.0-{H24}-{H146} dapi{H32} dnkey-{L26}-{L52} doo_v1_{H64} dop_v1_{H64} dor_v1_{H64} dp.pt.{B43} dp.st.prd.{B43}
dp.audit.{B43} dp.scim.{B43} duffel_test_{L43} duffel_live_{L43} dt0c01.{U24}.{U64} EZAK{B54} EZTK{B54} EAAM{B120}
EAAC{B120} FLWSECK_TEST-{H32}-X FLWSECK-{L32}-X fo1_{W43} fm1r_{S120} fm2_{S120} fio-u-{W64} AIza{W35} ghu_{B36}
ghs_{B36} github_pat_11ABCDEFG0{B70} gho_{B36} ghp_{B36} ghr_{B36} glcbt-64_{W20} gldt-{W20} glffct-{W20} glft-{W20}
glimt-{W25} glagent-{W50} gloas-{H64} glpat-{W20} glptt-{H40} GR1348941{W20} glrt-t1_{W27} glsoat-{W20} glc_{S64}
glsa_{B32}_{H8} pat.{W22}.{B24}.{B20} HRKU-AA{W58} hf_{B34} api_org_{B34} ico-{B32} s-s4t2ud-{H64} u-s4t2af-{H64}
lin_api_{B40} API-{U26} sk-proj-{W74} sk-admin-{W74} sk-{B20} sha256~{W43} pplx-{B48} pscale_tkn_{W43}
pscale_oauth_{W43} pscale_pw_{W43} PMAK-{H24}-{H34} pnu_{B36} pul-{H40} pypi-AgEIcHlwaS5vcmc{W80} rdme_{L70}
rubygems_{H48} tk-us-{W48} xkeysib-{H64}-{B16} sntrys_eyJpYXQiO{S90} sntryu_{H64} sm_aat_{B16} sm_pat_{B16}
shippo_live_{H40} shippo_test_{H40} shpat_{H32} shpca_{H32} shppa_{H32} shpss_{H32}
xapp-1-A0123456789-1234567890123-{L40} xoxb-123456789012-1234567890123-{B24} xoxe.xoxb-1-{U163} xoxe-1-{U146}
xoxs-1-2-3-{H32} xoxr-{B40} sgp_local_{H40} sgp_{H40} EAAA{W60} sq0atp-{W22} sq0csp-{W43} sk_live_{B24} rk_prod_{B24}
sk_prod_{B24} SK{H32} tfp_{L59} hvs.{W95} hvb.{W140} AQVN{W38} CCIPAT_{B22}_{H40} CFPAT-{W43} NF-{B32} NRAK-{U27}
NRII-{W25} NRIQ-{W25} VF.DM.{H24}.{B16} aio_{B28} ak_live_{B30} apify_api_{B36} bb_pr_{H30} bkua_{L40} cfut_{B48}
cfat_{B48} cfk_{B48} dckr_pat_{W27} dckr_oat_{W32} ddp_{B36} figd_{W43} figp_{W43} gsk_{B52} lsv2_pt_{H32} nvapi-{W64}
pat-eu1-{H8}-1a2b-4c3d-9e8f-{H12} pcsk_{B6}_{B63} phx_{B45} r8_{W37} ramp_sec_{B48} rh-api-{H8}-1a2b-4c3d-9e8f-{H12}
rootly_{H64} sbp_{H40} secret_{B43} shltm_{W40} slk_{H64} sqco_{B59} rzp_live_{B14} tskey-auth-{B30} ya29.{W60}
xai-{B80} sk-or-v1-{H64} SG.{W22}.{W43} key-{L32} napi_{L60} whsec_{B32} ATATT3xFfGF0{W90} ATCTT3xFfG{W90} ATBB{B32}
BBDC-{S44} thog-secret-{H32} npm_{B36} tvly-dev-{B32} fw_{B24} fc-{H32} jina_{B50} pa-{W43} vcp_{B24} ntn_{B46}
lin_oauth_{H64} sb_secret_{W32} tgp_v1_{W43} csk-{L48} e2b_{H40} gcntfy-{L40} AAAAAAAAAAAAAAAAAAAAA{B90} 3MVG9{B84}
1//0{W60} GOCSPX-{W28} mlsn.{H64} re_{B32} pub-c-{H8} sub-c-{H8} EAACEdEose0cBA{B80}
"""
NAMED = r"""
adafruitToken="{L32}"
algolia_token = {L32}
{\n    "alibaba_token": "{L30}"\n}
{"config.ini": "ASANA_TOKEN={L32}\\nBACKUP_ENABLED=true"}
<cloudflareToken>\n    {W40}\n</cloudflareToken>
codecov_token: {L32}
coinbase_token: '{W64}'
string confluentToken = "{B16}";
var contentfulToken string = "{W43}"
datadogToken := "{L40}"
discordToken := `{H64}`
String dropboxToken = "{L15}";
var fastlyToken = "{W32}"
$finicityToken .= "{H32}"
flickrToken = '{L32}'
System.setProperty("FRESHBOOKS_TOKEN", "{B64}")
  "gitterToken" => "{W40}"
HUBSPOT_TOKEN := "{H32}"
INTERCOM_TOKEN ::= "{W60}"
JFROG_TOKEN ?= "{B64}"
KRAKEN_TOKEN += "{S80}"
environmentVariables = {PATH=/usr/local/bin, KUCOIN_PASSWORD={H24}, LC_CTYPE=en_CA.UTF-8}
config.put("sasl.jaas.config", "PlainLoginModule required username=\\"JDOE\\" password=\\"{B16}\\";")
<entry name="linearToken" value="{B40}" />
{"name": "mailgun_token", "value": "{B40}"}
- name: DB_PASSWORD\n  value: {B18}
- name: API_KEY\n  value: "{B32}"
https://example.com?mapboxToken={B40}&fooBar=baz
https://netlify:{B40}@example.com/
// {B16} is the password
environ["OKTA_TOKEN"] = "{W40}"
os.environ['PLAID_SECRET'] = '{B30}'
process.env.SENTRY_TOKEN = "{H64}";
headers = {"X-Api-Key": "{B32}"}
-H "x-api-key: {B40}"
curl -u admin:{B14} https://host/
curl --user 'svc:{B14}' https://host/
mysql -u root -p{B12} db
psql "host=x user=y password={B12} dbname=z"
PGPASSWORD={B12} psql -h x
redis-cli -a {B20} ping
sshpass -p {B12} ssh root@h
docker login -u me -p {B24} registry
machine github.com login me password {B40}
//npm.example.com/:_authToken={B36}
//npm.example.com/:_password="{B36}"
[default]\naws_secret_access_key = {S40}
aws_session_token={S120}
Set-Cookie: sid={B32}; Path=/; HttpOnly
Cookie: session={B32}; theme=dark
Authorization: Basic {B28}=
Authorization: token {H40}
Authorization: Bearer {B40}
authorization=ApiKey {B40}
"Authorization": "Digest username=x, response={H32}"
jdbc:postgresql://h/db?user=u&password={B12}
jdbc:sqlserver://h;user=sa;password={B14};encrypt=true
Server=tcp:x,1433;User ID=sa;Password={B14};Encrypt=True
mongodb+srv://user:{B16}@c.mongodb.net/db
amqps://user:{B16}@host/vhost
redis://:{B20}@h:6379/0
ftp://u:{B10}@h
x.redis.cache.windows.net:6380,password={B43}=,ssl=True
AccountName=a;AccountKey={B86}==;EndpointSuffix=core
SharedAccessSignature sr=x&sig={B43}%3D&se=1&skn=n
client_secret: "{W40}"
"clientSecret":"{W40}"
oauth_consumer_secret={B42}
consumerSecret = "{B42}"
twilio auth_token {H32}
api_secret={B32}
"apiSecret": "{B32}"
webhook_secret: {B32}
JWT_SECRET={B32}
SECRET_KEY = "django-insecure-{B50}"
APP_KEY=base64:{B43}=
NEXTAUTH_SECRET={B32}
rails secret_key_base: {H128}
ENCRYPTION_KEY={H64}
"private_key_id": "{H40}"
vault_root_token: {B24}
unseal key 1: {B43}=
passphrase for key: {B14}
ansible_become_pass: {B14}
ansible_ssh_pass={B14}
POSTGRES_PASSWORD: {B14}
MYSQL_ROOT_PASSWORD={B14}
GRAFANA_ADMIN_PASSWORD="{B14}"
smtp_pass = {B16}
EMAIL_HOST_PASSWORD = "{B16}"
wifi psk="{B16}"
wpa_passphrase={B16}
net use X: \\\\srv\\s /user:u {B14}
password for bob: {B14}
my password is {B12}.
The API key is {B32}
your one-time code is {D6}
otp={D6}
<Password>{B14}</Password>
<add key="Password" value="{B14}" />
identified by '{B14}'
CREATE USER x WITH PASSWORD '{B14}'
kubectl create secret generic s --from-literal=password={B14}
az login --password {B24}
helm install --set auth.rootPassword={B14}
--api-key={B32}
--token {B32}
--client-secret "{B40}"
-e POSTGRES_PASSWORD={B14}
{\\"password\\":\\"{B14}\\"}
{'password': '{B14}'}
password: |\n  {B14}
let password = "{B14}";
pwd={B14};uid=sa
user.password == "{B14}"
"passwd":"{B14}"
login(username="a", password="{B14}")
Password (again): {B14}
secret_token={B40}
"refresh_token":"{W60}"
id_token={W60}
"sessionToken":"{W60}"
csrf_token={B40}
XSRF-TOKEN={B40}
X-Auth-Token: {B32}
X-Amz-Security-Token={B60}
&X-Amz-Signature={H64}
PRIVATE-TOKEN: {W20}
Proxy-Authorization: Basic {B24}
snowflake_password={B14}
SLACK_SIGNING_SECRET={H32}
STRIPE_KEY={B32}
GEMINI_KEY: {B39}
HEROKU_API_KEY={H36}
SONAR_LOGIN={H40}
CI_JOB_TOKEN={B20}
tfvars: admin_password = "{B14}"
credentials: {user: a, pass: {B14}}
"hmacKey": "{B44}"
storage_key = "{B86}=="
master_password={B14}
recovery code: {U16}
"""
HARMLESS = r"""
2026-11-19T11:00:01Z INFO auth: token refreshed for user 42, expires in 3600 s
level=info msg="session started" session=5f0c2b trace_id=4bf92f3577b34da6a3ce929d0e0e4736
commit 5d0befc1a2b3c4d5e6f708192a3b4c5d6e7f8091
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="
image: ghcr.io/acme/app@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
call_4bHxTz9QkLmNopQrStUvWx12 finished
thread_abc123def456ghi789jkl012 has 3 messages
run 550e8400-e29b-41d4-a716-446655440000 completed
chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12
toolu_01A2b3C4d5E6f7G8h9J0kLmN
file-AbCdEfGhIjKlMnOpQrStUvWx
msg_01XFDUDYJgAACzvnptvVoYEL says hello
arn:aws:iam::123456789012:role/service-role/my-function-role-1a2b3c4d
projects/my-project-123456/secrets/db-password/versions/3
kubectl get secrets -n kube-system | grep token
kubectl create secret generic db --from-env-file=.env
docker run -p 8080:80 -e NODE_ENV=production nginx:1.25
redis-cli -p 6379 ping
mysql -u root -p
curl -u "$USER:$PASS" https://api.example.com
curl -X POST https://example.com/oauth/token -d grant_type=client_credentials
psql -h localhost -p 5432 -U postgres
ssh -i ~/.ssh/id_rsa deploy@10.0.0.5
git clone git@github.com:acme/widgets.git
pip install pyjwt[crypto]==2.8.0
password: string;
password?: string | null
password = None
password = input("Password: ")
passwords must be at least 12 characters
The password is required.
Your password is not strong enough.
Enter the password for bob:
Forgot your password? Click here.
The token is invalid or has expired
token count: 4096 of 8192
tokens: 1234, cost: 0.02
max_tokens=1024, temperature=0.2
"usage":{"prompt_tokens":812,"completion_tokens":95,"total_tokens":907}
next_page_token: "CAUQAA"
primary_key=True, autoincrement=True
sort_keys=True
KeyError: 'session_id'
foreign key (user_id) references users(id)
the key is to start small
const key = event.key === "Enter";
api_key: str | None = Field(default=None, description="The API key")
if not api_key: raise ValueError("api_key is required")
token = secrets.token_urlsafe(32)
SECRET_KEY = env("SECRET_KEY")
secret = os.getenv("SECRET")
secretName: db-credentials
secretKeyRef: {name: db, key: password}
valueFrom:\n  secretKeyRef:\n    name: db-credentials\n    key: password
- name: DB_PASSWORD\n  valueFrom: {secretKeyRef: {name: db}}
- name: TOKEN_TTL\n  value: "3600"
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
{"type":"object","properties":{"password":{"type":"string","format":"password"}}}
"Authorization": f"Bearer {token}"
Authorization: Bearer $GITHUB_TOKEN
headers["Authorization"] = "Bearer " + token
WWW-Authenticate: Basic realm="api"
auth=(user, password)
auth: { type: oauth2, flows: { clientCredentials: {} } }
@requires_auth("admin")
cookie policy: we use cookies
session.cookies.clear()
pin the version to 1.2.3
pin: numpy==1.26.4
otp --help
signature: (a: int, b: int) -> int
def sign(self, signature_version="v4"):
X-Amz-Date: 20261119T110000Z
https://example.com/reset?token=<token>
https://user@example.com/path
https://example.com/a:b@c
postgres://localhost/db
redis://localhost:6379/0
s3://bucket/path/to/key
mailto:ann@example.com
time 12:30:45, ratio 16:9
basic understanding of TypeScript required
Basic authentication is deprecated
bearer of bad news
the bearer token scheme (RFC 6750)
a basic income of 1200 euros
secret_santa_2026.xlsx
secretary@example.com
passenger: Ann, seat: 12A
compass: NNE
bypass: true
passthrough=1
keyboard: QWERTY
monkey: banana
hotkey=ctrl+k
tokenizer: cl100k_base
tokenize("hello world")
author: Jane Doe
authorName=Jane
authority: https://login.microsoftonline.com
authored 2026-01-01
credentials: include
credentials: "same-origin"
accessKey="s"
aria-keyshortcuts="Control+S"
api_version=2026-01-01
APIKEY_HEADER = "X-API-Key"
TOKEN_URL = "https://auth.example.com/token"
PASSWORD_MIN_LENGTH=12
password_hash algorithm: argon2id
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
CSRF_COOKIE_NAME = "csrftoken"
SESSION_COOKIE_AGE = 1209600
JWT_ALGORITHM=HS256
jwt.decode(token, key, algorithms=["RS256"])
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 user@host
-----BEGIN CERTIFICATE-----
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb1
AGENT-KEYNOTE-2026 slides
test_live_reload_of_configuration_files
my_api_client_implementation_details
sk-learn is a typo of scikit-learn
the sk-SK locale
gh pr create --title "auth: fix"
npm_config_registry=https://example.com
hf_transfer is enabled
key-value store benchmarks
pa-system for the hall
re_compile and re_match
do_v1_migration()
class Secret(BaseModel): name: str
get_secret_value()
secretsmanager.get_secret_value(SecretId="prod/db")
vault kv get -field=password secret/db
terraform output -raw db_password
echo $PASSWORD | docker login --password-stdin
--password-file /run/secrets/db
--token-endpoint https://example.com/token
docker login -u me --password-stdin registry.example.com
git config credential.helper store
"password": {"$ref": "#/components/schemas/Password"}
"token": null
"secret": false
"apiKey": ""
password=
token =
api_key: ~
password: "********"
SECRET=changeme
PASSWORD={{ .Values.db.password }}
password: !vault |
password = var.db_password
password = random_password.db.result
{{ secrets.DEPLOY_KEY }}
%env(DATABASE_PASSWORD)%
process.env.API_KEY!
props.token ?? ""
token?.value
this.#password
self._token_cache[key] = token
tokens[i].text
keys: a, b, c
exit code is 1
The status code is 404
error code 100234
zip code is 94107
country code: 49
"""


def lines_of(block: str) -> list[str]:
    """The lines of a block, with their line breaks."""
    return [re.sub(r"(?<!\\)\\n", "\n", line).replace("\\\\", "\\") for line in block.strip().splitlines()]


def filled(text: str, seed: int) -> tuple[str, str]:
    """A text with made values, and the first of them."""
    values: list[str] = []

    def value(found: re.Match[str]) -> str:
        if found[1] == "D":
            values.append(f"{seed * 7919 % 10 ** int(found[2]):0{found[2]}}")
        else:
            values.append(made(ALPHABETS[found[1]], int(found[2]), seed + len(values)))
        return values[-1]

    return re.sub(r"\{([BDHLSUW])([0-9]+)\}", value, text), values[0]


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    forms = [filled(each, seed) for seed, each in enumerate(PREFIXED.split())]
    placed = [(PLACES[at % len(PLACES)].format(text), secret) for at, (text, secret) in enumerate(forms)]
    return [*placed, *(filled(each, seed) for seed, each in enumerate(lines_of(NAMED)))]
