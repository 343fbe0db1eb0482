"""An eighth list: columns of tables, random words alone, passwords as arguments and defaults, and more signs between a name and its
value, in the kinds that four scanners' own samples showed to be missed. The words of its lines are explained in
`more_forms.py`; the secret stands between « and ».
"""

from __future__ import annotations

from tests.slim.redaction.more_forms import filled, lines_of

PLACED = r"""
quirkbase token - '«{H40}»'
quirk key - "«{B32}»"
quirkbase '«7q{B30}»'
client.connect(QQ7Z, «k4Tq{B28}»)
the new one is «rT5{B33}», use it
quirkKey: "«hfCnuVcYOgiRjlDEmAoRbN»"
QUIRK_KEY=«ZAQWS-XCDER-VBGTR-FRTGU-KLMNX»
https://api.example.com/v1/user?key=«{H8}-1a2b-4c3d-9e8f-{H12}»
key: «{H8}-1a2b-4c3d-9e8f-{H12}»
https://api.example.com/v1/token/«OTI2NjA3{B36}»
quirk_live_«aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa»
vca_«{B56}»
amzn.mws.«{H8}-ca71-4217-8acc-{H12}»
git+https://«{H40}»:x-oauth-basic@github.com/a/b.git
password for joe:«Swordfish{D2}»
ENV DRONE_TOKEN «YXNkZmZmZmZm{B12}»
ENV DB_PASSWORD «swordfish»
setenv API_SECRET «{B30}»
TOKEN = getenv("API_TOKEN") ? getenv("API_TOKEN") : "«{B32}»"
PASSWORD=${1:-«swordfish»}
user, password = "joe", "«swordfish»"
const aPassword02, bPassword03 string = "hunter{D2}", "«swordfish»"
Password: &quot;«Dw7^nd&lt;dj{D2}»&quot;
{&quot;password&quot;:&quot;«swordfish»&quot;}
<passwords><first_passwords>«swordfish»</first_passwords></passwords>
{"key": "PASS", "value": "«swordfish»"}
passwords:\n  - "«swordfish»"\n  - cobalt{D2}
passwords:\n  - "cobalt{D2}"\n  - «swordfish»
password = ["cobalt{D2}", "«swordfish»"]
user,password\njoe,«swordfish»
user,password,role\njoe,cobalt{D2},admin\nann,«swordfish»,user
name;api_key;active\nprod;«{H32}»;true
"user","password"\n"joe","«swordfish»"
| user | password |\n|------|----------|\n| joe  | «swordfish» |
| id | token | at |\n|---|---|---|\n| 1 | «{B32}» | now |
 user | password\n------+----------\n joe  | «swordfish»
Parameters:\n  DBPassword:\n    Type: String\n    Default: «swordfish»\n
DB_PASSWORD:\n  value: «swordfish»\n
user.setPassword("«swordfish»");
props.put("db.password", "«swordfish»");
os.environ.get("PASSWORD", "«swordfish»")
if (password.equals("«swordfish»")) {
String password = new String("«swordfish»");
var password string = "«swordfish»"
<input type="password" id="p" value="«swordfish»">
echo "«swordfish»" | passwd --stdin joe
mongo -u joe -p «swordfish» --quiet
bindpw «swordfish»
**Password**: «swordfish»
`password`: «swordfish»
password - «Swordfish{D2}!»
password -> «Swordfish{D2}!»
my password's «Swordfish{D2}!»
WIFI:T:WPA;S:home;P:«swordfish»;;
"""

HARMLESS = r"""
for secret := range secrets {
url = "https://example.org/check?access_key="+match+"&email="+mail
> found an api key: {{KEY}}
API_KEY={your api key}
user,name\njoe,swordfish
| Token | Meaning |\n|-------|---------|\n| YYYY | the year |
| key | value |\n|---|---|\n| color | green |
the password, which is long,\nand the rest, of it
passwords:\n  - ${DB_PASSWORD}\n  - <your password>
passwords: two of them\n- one\n- another
password:\n  type: string\n  minLength: 8
token:\n  description: the token\n  default: null
setPassword(value)
getByLabel("password", { exact: true })
form.get("password")
if password.equals(other)
var password string
password string = ""
user, password = login()
<input type="password" name="password" placeholder="your password">
ENV NODE_ENV production
ENV TOKEN $TOKEN
set -x
ARG SECRET_KEY
resulting in OAuth2ClientCredentialsGrantHandlerFactory2
use base64EncodedStringOfThe2ndPart2Here
index-4fG7hK2aQ9sD1zXcVbNm3K5p.js is loaded
id 4fG7hK2aQ9sD1zXcVbNm3K5p is gone
["call_a1B2c3D4e5F6g7H8i9J0k1L2"]
see toolu_01A09q90qw90lq917835lq9X2 and chatcmpl-9aB8cD7eF6gH5iJ4kL3mN2oP1qR0sT
run 6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 has ended
{"key": "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"}
sha512-4fG7hK2aQ9sD1zXcVbNm3K5p4fG7hK2aQ9sD1zXcVbNm3K5pA==
/srv/4fG7hK2aQ9sD1zXcVbNm3K5p/x
password - the word that you chose
password -> hash
wifi: the password is on the wall
in/keys/settings and /token/refresh
translation_key: commonButtonsSaveAndContinue
shared_key_name: RootManageSharedAccessKey
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    placed = [filled(f"{each}{{D1}}", 11_000 + seed)[0][:-1] for seed, each in enumerate(lines_of(PLACED))]
    return [
        (each.replace("«", "").replace("»", ""), each.partition("«")[2].partition("»")[0]) for each in placed
    ]


def harmless() -> list[str]:
    """Texts without a secret."""
    return [filled(f"{each}{{D1}}", 11_500 + seed)[0][:-1] for seed, each in enumerate(lines_of(HARMLESS))]
