"""A seventh list: names with a stage or a number behind them, fallbacks, comparisons, hashes, joined keys and more arguments, in the
kinds that scanners' own samples showed to be missed. The words of its lines are explained in `more_forms.py`; the secret stands
between « and ».
"""

from __future__ import annotations

from tests.slim.redaction.more_forms import filled, lines_of

PLACED = r"""
DB_PASSWORD_PROD=«Swordfish-{D3}»
STRIPE_SECRET_KEY_LIVE="«{B24}»"
PASSWORD1=«hunter-{D3}»
api_key_2: «{B20}»
"db_password_staging": "«cobalt{D4}»",
SECRET_KEY_BASE64=«{B32}»
POSTGRES_PASSWORD_DEV: «swordfish»
token_value = "«{B32}»"
refresh_token_old = '«{B40}»'
auth_token_new=«{B24}»
AUTH_TOKEN_1=«{B30}»
session_secret_default: «cobalt-{D3}»x9y8z7w6v5u4
if password != "«Tr0ub{D3}»":
if (token === '«{B20}»') {
password !== "«PaS{D3}wx#»"
api_token <- "«{B24}»"
db_password <- '«hunter{D2}»'
authToken%3D«{B20}»
char password02[255] = "«hardly{D2}»", other;
const KEY = process.env.API_TOKEN || "«{B32}»"
password = os.getenv("DB_PASSWORD") or "«swordfish»"
TOKEN = ENV['API_TOKEN'] || '«{B20}»'
var secret = Environment.GetEnvironmentVariable("APP_SECRET") ?? "«{B24}»";
API_SECRET=${API_SECRET:-«{B20}»}
<key>pro_password</key>\n    <value>«cobalt{D2}»</value>
smtps://joe@example.org:«{B12}»@smtp.example.org:465
joe:$apr1$«{B8}$/{B21}»
root:$6$rounds=5000$«{B16}${B40}»:19000:0:99999:7
{SSHA}«{B32}»
pbkdf2_sha256$«600000${B12}${B43}=»
$argon2id$«v=19$m=65536,t=3,p=4${B22}${B43}»
curl --oauth2-bearer "«{B24}==»" https://example.org
kinit joe@EXAMPLE.ORG <<< '«Sup3r-{D3}»'
gh auth login --with-token <<< "«{B36}»"
net use Z: \\\\srv01\\share «Passw{D2}rd» /user:joe
net use Z: \\\\srv01\\share /user:CORP\\joe «Passw{D2}rd»
vendorctl login -p «Kq{D3}RtVwXy» https://example.org
deploy -u joe -P "«Zx{D3}CvBnMq»"
curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "«lT{D1}t{B20}»");
auth: «{H8}-1a2b-4c3d-9e8f-{H12}»
-----BEGIN USER NKEY SEED-----\n«SUAM{U54}»\n------END USER NKEY SEED------
pem = "-----BEGIN PRIVATE KEY-----\\n" +\n    "MIIBVAIBADANBgkq{B48}\\n" +\n    "«VRsEhjLB{B56}»\\n" +\n    "-----END PRIVATE KEY-----"
NRJS-«{H19}0»
akab-«{L16}-{L16}»
"""

HARMLESS = r"""
if password != confirm_password:
if token !== undefined && token !== null
token != "EOF"
CancellationToken cancellationToken = default)
/// <param name="cancellationToken">A token to cancel the write.</param>
git remote add origin "https://x-access-token:${GITHUB_TOKEN}@github.com/${REPO}.git"
if: env.HAS_SECRETS == 'true'
Set your API key: export it in the shell
password = "{password}"
my_password = "{ password }"
password: $${PYPI_PASSWORD}
password: $$PASSWORD
<db_password>null</db_password>
<MasterUserPassword>!Ref 'MasterUserPassword'</MasterUserPassword>
ANTHROPIC_API_KEY=sk-ant-xxx
token: https://example.org/oauth/token
const token = req.token ?? "anonymous"
auth_token or None
key = props.token || defaultToken
if (!password || !user) return
PASSWORD_MIN_LENGTH_DEFAULT=8
password_field = form.password
password_text = "Your password"
token_string = "if"
SECRET_NAME_PROD=db-credentials
x <- token
costs $5 or $1$2 in a pattern
echo $1 $2 $6
replace(/(a)(b)/, "$1$2")
mkdir -p build/output/Release2
ssh -p 2222 joe@example.org
docker run -p 8080:80 -w /app image
cat <<< "hello world"
net use Z: \\\\srv01\\share /persistent:yes
net use * /delete
-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----
color[255] = "red"
assert "GOOGLE_API_KEY=" in content and "TOKEN=" not in content
value = line.split("password=")[-1].strip()
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    placed = [filled(f"{each}{{D1}}", 9_000 + seed)[0][:-1] for seed, each in enumerate(lines_of(PLACED))]
    return [
        (each.replace("«", "").replace("»", ""), each.partition("«")[2].partition("»")[0]) for each in placed
    ]


def harmless() -> list[str]:
    """Texts without a secret."""
    return [filled(f"{each}{{D1}}", 9_500 + seed)[0][:-1] for seed, each in enumerate(lines_of(HARMLESS))]
