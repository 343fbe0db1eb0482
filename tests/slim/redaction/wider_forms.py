"""A fourth list of places of secrets, written before any rule for them, by service and by place; the words of its lines are
explained in `more_forms.py`."""

from __future__ import annotations

from tests.slim.redaction.more_forms import PLACES, filled, lines_of

PREFIXED = r"""
github_pat_{B22}_{B59} glrt-{W20} gldt-{W20} ATBB{B24}{H8} sgp_{H16}_{H40} xapp-1-A0{U9}-{D13}-{H64}
https://hooks.slack.com/services/T0AB1CD2E/B0AB1CD2EFG/{B24} https://discord.com/api/webhooks/123456789012345678/{W68} {D10}:AA{W33}
https://acme.webhook.office.com/webhookb2/1@2/IncomingWebhook/{H32}/0a1b
LINODE_TOKEN={H64} vcp_{B56} nfp_{B36} HRKU-AA{B58} rnd_{B28} dop_v1_{H64} LTAI{B20} AQVN{W36}
SCW_SECRET_KEY={H8}-1a2b-4c3d-9e8f-{H12} rk_live_{B24} whsec_{B32} EAAAE{W58} shpat_{H32}
access-production-{H8}-1a2b-4c3d-9e8f-{H12} pdl_live_apikey_{L26}_{B22}_{B3} rzp_live_{B14} FLWSECK-{H32}-X
access_token$production${L16}${H32} SG.{W21}.{W42} key-{H32} {H32}-us14 re_{B8}_{B24} xkeysib-{H64}-{B16} mlsn.{H64}
sk-ant-api03-{W93}AA sk-proj-{W120} sk-or-v1-{H64} gsk_{B52} r8_{B37} xai-{B80} pplx-{B48} nvapi-{W64} tgp_v1_{W42}
fw_{B24} csk-{L48} jina_{H32}{B28} lsv2_pt_{H32}_{H10} tvly-dev-{B32} fc-{H32} BSA{W28} e2b_{H40} llx-{B48} pa-{W42}
hf_{B34} wandb_v1_{B77} sk-lf-{H8}-1a2b-4c3d-9e8f-{H12} sk-helicone-{L7}-{L7}-{L7}-{L7} sk_{H48} npm_{B36}
pypi-AgEIcHlwaS5vcmc{W120} rubygems_{H48} cio{B32} dckr_pat_{W26} oy2{L43} AKCp{B69} CLOJARS_{H60} sbp_{H40}
sb_secret_{W21}_{B8} pscale_tkn_{W42} napi_{L64} pat{B14}.{H64} ntn_{D11}{B35} dapi{H32} pcsk_{B6}_{B63} xau_{B32}
AstraCS:{B24}:{H64} glsa_{B32}_{H8} glc_{S80} NRAK-{U27} sntrys_{S106}_{S42} phx_{B43} hcaik_01{L56}
dt0c01.{U24}.{U64} xaat-{H8}-1a2b-4c3d-9e8f-{H12} lin_api_{B40} DD_API_KEY={H32} tskey-auth-k{B12}CNTRL-{B32}
nbp_{B36} NGROK_AUTHTOKEN={B43} hvs.{W93} dp.st.prd.{B40} ops_eyJ{W266} {B14}.atlasv1.{B65} pul-{H40} bkua_{H40}
CCIPAT_{B22}_{H40} squ_{H40} PMAK-{H24}-{H34} figd_{W40} ATATT3xFfGF0{W173}={H8} CFPAT-{W42} sk.eyJ1{W66}.{W21}
SK{H32} shippo_live_{H40} EZAK{B54} duffel_live_{W42} pnu_{B36} rdme_{L70} tfp_{B40}_{B14} tr_prod_{B24}
signkey-prod-{H64} apify_api_{B36} polar_oat_{B43} cal_live_{H32} sdk-{H8}-1a2b-4c3d-9e8f-{H12} rpa_{U46} ddp_{B36}
AKIA{U16} AIza{W36} GOCSPX-{W28} ya29.a0{W160} EAACEdEose0cBA{B100} CCDB1_{B22}_{B40} ak_{W20} vtwn_{B40}
p.eyJ{W80}.{W42} secret-{B43} unkey_{B24} BASETEN_API_KEY={B8}.{B32} FAL_KEY={H8}-1a2b-4c3d-9e8f-{H12}:{H32}
"""
NAMED = r"""
config = {'dbpassword': '{B14}'}
{'clientSecret': '{B28}', 'clientId': 'web'}
{"accessKeyId":"x","secretAccessKey":"{S40}"}
{"auth":{"type":"basic","user":"a","passphrase":"{B14}"}}
{"otp":"{B14}"}
{"refresh_token": "{W53}", "expires_in": 3600}
{"sessionId":"{B32}"}
{"webhookSecret":"{B24}"}
{"signing_key":"{S42}"}
{"encryptionKey":"{S42}"}
{"user":"eva","pin":"{B14}"}
{"credentials":"{S32}"}
{"env":[{"name":"STRIPE_SECRET","value":"{B30}"}]}
env:\n  - name: DB_PASSWORD\n    value: {B14}\n
export MYSQL_ROOT_PASSWORD={B14}
SMTP_PASS="{B14}"
MAPS_APIKEY={B32}
OPENAI_KEY={B40}
SECRET_KEY='django-insecure-{B40}'
SECRET_KEY_BASE={H64}
APP_KEY=base64:{S42}
JWT_SIGNING_SECRET={B40}
PGPASSWORD={B14} psql -h db
SESSION_SECRET={B24}
COOKIE_PASSWORD={B32}
set DB_PASS={B14}
$env:API_TOKEN = "{B30}"
ConvertTo-SecureString "{B14}" -AsPlainText -Force
$AdminPassword = "{B14}"
Connect-Thing -Credential admin -Password '{B14}'
database:\n  user: app\n  password: {B14}\n
auth_token: "{B24}"
- api_key: {B24}\n  region: eu
password: >-\n  {B14}\n
<property><password>{B14}</password></property>
<connection user="sa" password="{B14}" />
<add key="StorageAccountKey" value="{S85}" />
<server><id>nexus</id><username>d</username><password>{B14}</password></server>
provider "x" {\n  api_token = "{B40}"\n}
master_password   = "{B14}"
[db]\npasswd = "{B14}"
secret-key = "{B32}"
[client]\nuser=root\npassword={B14}\n
aws_secret_access_key = {S40}
spring.datasource.password={B14}
server.ssl.key-store-password={B14}
[pypi]\nusername = a\npassword = {B14}
//registry.acme.dev/:_authToken={H8}-1a2b-4c3d-9e8f-{H12}
_auth={S32}
deploy --token {B32} --region eu
tool --api-key={B32} run
mysqldump --password={B14} shop
mysql -u root -p{B14} shop
curl -u admin:pw{B12} https://x.dev
curl --user 'svc:{B14}' https://x.dev
sshpass -p '{B14}' ssh root@h
sshpass -p {B12} ssh root@h
redis-cli -h c -a {B20} ping
docker login -u me -p {B24} ghcr.io
psql postgresql://app:{B14}@db/shop
openssl enc -aes-256-cbc -pass pass:{B14} -in a
htpasswd -b .htpasswd joe {B14}
az login --service-principal -u app -p {B40} --tenant t
mongosh -u root --password {B14} --authenticationDatabase admin
keytool -list -storepass {B12} -keystore k.jks
unzip -P {B12} backup.zip
ldapsearch -D cn=admin -w {B12} -b dc=x
wget --http-password={B12} https://h/f
smbclient //s/d -U user%{B12}
rclone config create r sftp pass {B22}
https://deploy:{B20}@git.acme.dev/x.git
amqp://guest:{B14}@mq:5672/
redis://:{B20}@cache:6379/0
mongodb+srv://root:{B16}@c0.ab1cd.mongodb.net/db
https://api.acme.dev/v1/x?access_token={B32}&limit=5
https://maps.acme.dev/?q=a&apikey={B32}
https://app.acme.dev/cb#id_token=eyJ{W32}.eyJ{W80}.{W42}&state=1
https://acme.dev/reset?token={W42}
https://a.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sig={S42}&se=2027
https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={H64}
https://storage.googleapis.com/b/o?X-Goog-Signature={H64}&X-Goog-Date=2
https://d1.cloudfront.net/f?Expires=17&Signature={W80}&Key-Pair-Id=K1
machine api.acme.dev login joe password {B16}
machine h\n  login joe\n  password {B16}\n
db.acme.dev:5432:shop:app:{B18}
the password is {B14}
The admin password for staging is {B14}, please change it
use the token {B24} to log in
My API key is {B30}.
Your new password was set to {B14}
Your verification code is {B14}
Login with admin / {B14} (password)
ENV API_SECRET {B24}
ENV DB_PASSWORD={B14} PORT=80
ARG NPM_TOKEN={B36}
Server=db;Database=x;User Id=sa;Password={B14};
Data Source=db;uid=sa;pwd={B14};
jdbc:mysql://db/x?user=a&password={B14}
jdbc:oracle:thin:scott/{B10}@//db:1521/x
DefaultEndpointsProtocol=https;AccountName=a;AccountKey={S85};EndpointSuffix=core.windows.net
Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={S42}
host=db user=app password={B14} dbname=x
Authorization: Bearer {B40}
Authorization: Basic {S26}
Authorization: token {H40}
X-Api-Key: {B32}
X-Auth-Token: {B32}
Proxy-Authorization: Basic {S26}
Authorization: Digest username="a", response="{H32}"
Authorization: ApiKey {S40}
Cookie: PHPSESSID={L26}; theme=dark
Set-Cookie: sessionid={L32}; HttpOnly
Cookie: connect.sid=s%3A{B32}
Cookie: JSESSIONID={U32}
curl -H 'Authorization: Bearer {B40}' https://x
curl -d 'grant_type=client_credentials&client_secret={B32}' https://x/token
curl -d '{"password":"{B14}"}' https://x
http POST x.dev/login username=joe password={B12}
2026-11-19 INFO login user=joe password={B12} ok
{"level":"info","msg":"auth","apiKey":"{B32}"}
DEBUG auth_token: {B32} accepted
const API_SECRET = "{B32}";
private static final String DB_PASSWORD = "{B14}";
password := "{B14}"
client = Client(api_key="{B32}")
conn.setPassword("{B14}");
os.environ["DB_PASSWORD"] = "{B14}"
config.secret_token = '{H40}'
define('DB_PASSWORD', '{B14}');
const token: string = "{B32}";
let api_key: &str = "{B32}";
fetch(u, {headers: {'X-API-KEY': '{B32}'}})
CREATE USER app WITH PASSWORD '{B14}';
CREATE USER 'a'@'%' IDENTIFIED BY '{B14}';
"{\\"password\\":\\"{B14}\\"}"
<key>ApiToken</key><string>{B30}</string>
[Interface]\nPrivateKey = {S42}\n
network={ ssid="x" psk="{B14}" }
-----BEGIN OPENSSH PRIVATE KEY-----\n{S266}\n-----END OPENSSH PRIVATE KEY-----
PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n{S48}\nPrivate-MAC: {H64}
AGE-SECRET-KEY-1{U58}
{"kty":"RSA","n":"x","e":"AQAB","d":"{W170}"}
got eyJ{W32}.eyJ{W80}.{W42} back
{"type":"service_account","private_key_id":"{H40}"}
Das Passwort lautet {B14}
client-key-data: {S266}
{"auths":{"r.io":{"auth":"{S32}"}}}
FlyV1 fm2_{S80}
"""
HARMLESS = r"""
token = request.headers.get("Authorization")
if token == expected: return True
show_password: bool = False
api_key = os.environ["API_KEY"]
password = getpass.getpass("Password: ")
const token = await getToken(user);
password: ${DB_PASSWORD}
API_KEY=YOUR_API_KEY
Authorization: Bearer <token>
password=********
api_key: "{{ vault_api_key }}"
secret: !Ref MySecret
token: $TOKEN
export TOKEN=$(cat /run/secrets/token)
max_tokens: 4096
{"usage":{"prompt_tokens":1532,"completion_tokens":88,"total_tokens":1620}}
tokenizer = AutoTokenizer.from_pretrained("bert-base")
{"properties":{"password":{"type":"string","minLength":8}}}
{"required":["username","password"],"type":"object"}
commit 3f786850e387550fdab836ed7e6dc881de23001b
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
request id 550e8400-e29b-41d4-a716-446655440000 took 31 ms
/usr/lib/python3/dist-packages/secretstorage/__init__.py
The password must have at least eight characters and one digit.
Please enter your token to continue.
Forgot your password? Click here to reset it.
pip install keyring python-jose passlib
"jsonwebtoken": "^9.0.2"
secret-santa: a game for the office
keyboard: qwerty
primary_key: id
foreign key (user_id) references users(id)
key: value
{"key":"ArrowLeft","code":"ArrowLeft"}
<input type="password" name="password" placeholder="Password" />
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
resolved "https://packages.example/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c"
name = "cryptography" version = "42.0.5"
- Add `token` option to `Client` (#1234)
def set_password(self, password: str) -> None:
self.token = token
password = None
token: string;
interface Auth { token: string; secret?: string }
type Token = { kind: "number"; value: string };
token=next_token(stream)
for token in tokens: print(token)
assert secret.startswith("sk-")
SELECT password_hash FROM users WHERE id = $1
ALTER TABLE users ADD COLUMN password VARCHAR(255)
pwd && ls -la
cd $(pwd)/src
author: Jane Miller
authority: https://login.acme.dev/
authors = ["Eva <eva@acme.dev>"]
pinned: true
pin: 4 of the chip is ground
passenger: Smith
compass: north
session: morning
session_timeout=3600
The key to success is patience.
The secret of good bread is time.
A token is a small unit of text.
Her pin was made of silver.
The session is about databases.
password reset email sent to user 42
invalid password for user root
ERROR: authentication failed: token expired
Token expired at 2026-11-19T10:00:00Z
http://localhost:8080/login?next=/settings
https://acme.dev/blog/how-we-rotate-keys-and-tokens
postgresql://localhost/test
redis://cache:6379/0
git clone https://github.com/acme/shop.git
mysql -u root -p shop
ssh -i ~/.ssh/id_ed25519 root@host
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl eva@laptop
-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK
-----END PUBLIC KEY-----
docker run -p 8080:80 nginx
tar -czf a.tgz --exclude=secrets .
kubectl get secret db -o yaml
kubectl create secret generic db --from-file=./password.txt
secretKeyRef: {name: db, key: password}
valueFrom: secretKeyRef
cache_key: user:42:profile
partition_key = "customer_id"
sort_key="created_at"
i18n key: checkout.button.label
idempotency_key: order-2291
ssh_key_path: ~/.ssh/id_rsa
password_file: /run/secrets/db_password
token_url: https://auth.acme.dev/oauth/token
"tokenEndpoint": "https://auth.acme.dev/token"
csrf: enabled
Authorization: Bearer ${ACCESS_TOKEN}
curl -H "Authorization: Bearer $TOKEN" https://x
password = "changeme"
isbn 978-3-16-148410-0
4f3c2a1b9e8d7c6f build 20261119.4
0x52908400098527886E0F7030069857D2E4169EE7
E = mc^2; F(x) = sum of x_i for i in range(n)
tokens_per_second=48.2
const passwordField = document.querySelector("#password");
password_confirmation must match password
raise ValueError("token is missing")
auth = HTTPBasicAuth(user, password)
headers = {"Authorization": f"Bearer {token}"}
OPENAI_API_KEY=sk-...
secret = hmac.new(key, msg, hashlib.sha256).hexdigest()
Use `--token` to pass a token.
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    forms = [filled(each, 1_300 + seed) for seed, each in enumerate(PREFIXED.split())]
    placed = [(PLACES[at % len(PLACES)].format(text), secret) for at, (text, secret) in enumerate(forms)]
    return [*placed, *(filled(each, 1_700 + seed) for seed, each in enumerate(lines_of(NAMED)))]


def harmless() -> list[str]:
    """Texts without a secret."""
    return lines_of(HARMLESS)
