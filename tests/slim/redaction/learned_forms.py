"""A sixth list: keys beside a service's name, words as passwords, arguments of tools and more contexts, from the documents of
connectors, notifiers and tools. The words of its lines are explained in `more_forms.py`; the secret stands between « and ».
"""

from __future__ import annotations

from tests.slim.redaction.more_forms import filled, lines_of

PLACED = r"""
\t\tPassword: config.NewSecret([]byte("«Swordfish-398»")),
bestDNS, err := NewDNSProviderBestDNS("«{H8}-1a2b-4c3d-9e8f-{H12}»")
reader = MondayReader("«{B40}»")
ifttt:\n  key: «{H8}-1a2b-4c3d-9e8f-{H12}»
access_key_id = «{H32}»
terraform output alb_url\n# UI login: admin / «{B32}»
CREATE USER airbyte_user WITH ENCRYPTED PASSWORD '«Trustno-cobalt»';
python setup.py --user x --password «cobaltmonsoon» --schema y
datadog: «{H32}»
const newrelic = '«{H40}NRAL»'
algoliasearch("B1G2GM9NG0", "«{H32}»")
honeycomb -> «{H32}»
  pagerduty: '«{B20}»'
opsgenie {U8} «{H8}-1a2b-4c3d-9e8f-{H12}»
Here's the Deepgram credential: «{H40}»
use «{H32}» for openweathermap
curl "https://api.openweathermap.org/data/2.5/weather?q=London&appid=«{H32}»"
https://api.themoviedb.org/3/movie/550?api_key=«{H32}»
http://api.ipstack.com/134.201.250.155?access_key=«{H32}»
https://api.nasa.gov/planetary/apod?api_key=«{B40}»
https://api.giphy.com/v1/gifs/search?api_key=«{B32}»&q=cat
https://finnhub.io/api/v1/quote?symbol=AAPL&token=«{L20}»
https://mainnet.infura.io/v3/«{H32}»
https://eth-mainnet.g.alchemy.com/v2/«{W32}»
wss://solana-mainnet.quiknode.pro/«{H40}»/
https://hooks.zapier.com/hooks/catch/1234567/«{L7}»/
https://oapi.dingtalk.com/robot/send?access_token=«{H64}»
https://api.day.app/«{B22}»/hello
ntfy publish --token tk_«{L29}» mytopic hi
gotify push -t «A{B14}» hello
curl -H "X-Gotify-Key: «A{B14}»" https://push.example.com/message
curl -H "Api-Key: «NRAK-{U27}»" https://api.newrelic.com/graphql
curl -H "X-Auth-Key: «{H37}»" -H "X-Auth-Email: joe@example.com" https://api.cloudflare.com/
curl -H "X-Vault-Token: «hvs.{W90}»" https://vault:8200/v1/secret/data/x
curl -H "X-Shopify-Access-Token: shpat_«{H32}»" https://x.myshopify.com/admin/api
curl -H "Authorization: Bearer «{W180}»" https://graph.microsoft.com/v1.0/me
curl -H "Authorization: Basic «{S36}==»" https://api.example.com
curl -H "Authorization: SSWS 00«{W40}»" https://dev-1.okta.com/api/v1/users
curl -H "Authorization: Klaviyo-API-Key pk_«{H34}»" https://a.klaviyo.com/api
curl -H "Authorization: GenieKey «{H8}-1a2b-4c3d-9e8f-{H12}»" https://api.opsgenie.com/v2/alerts
curl -H "Authorization: Discogs token=«{B40}»" https://api.discogs.com
curl -u "api:«{H32}-{H8}-{H8}»" https://api.mailgun.net/v3/domains
curl --user "anystring:«{H32}-us14»" https://us14.api.mailchimp.com/3.0/
curl -d 'username=joe&password=«w-LL7p-vSHQj5o»' https://example.com/login
wget --header="Authorization: token «{H40}»" https://x.example.com
echo '«w-LL7p-vSHQj5o»' | docker login --username joe --password-stdin
podman run -e "MINIO_SECRET_KEY=«{S40}»" minio
kubectl create secret generic db --from-literal=password=«HarbourVelvet»
kubectl create secret docker-registry r --docker-username=joe --docker-password=«bj5gr7CT9pFNmn»
helm upgrade x . --set-string global.apiKey=«{H32}»
terraform apply -var "db_password=«k9!Tq2vLwz»"
ansible-playbook s.yml -e "ansible_become_pass=«giraffe_tomato»"
ansible_ssh_pass=«swordfish» ansible_user=root
vault kv put secret/db password=«HarbourVelvet» user=joe
vault login «s.{B24}»
vault operator unseal «{S44}»
aws ssm put-parameter --name /db/pass --type SecureString --value '«sd3R%KFZXimd»'
aws secretsmanager create-secret --name db --secret-string '«Gdg6-JPZn2ass»'
gcloud sql users set-password postgres --instance=i --password=«giraffe_tomato»
az login --service-principal -u {H8}-1a2b-4c3d-9e8f-{H12} -p «{B3}8Q~{W34}» --tenant {H8}-1a2b-4c3d-9e8f-{H12}
az storage account list --account-key «{S86}==»
heroku config:set STRIPE_SECRET=«{B32}»
fly secrets set DATABASE_URL=postgres://u:«k9!Tq2vLwz»@db/x
railway login --token «{H8}-1a2b-4c3d-9e8f-{H12}»
//npm.pkg.github.com/:_authToken=«ghp_{B36}»
twine upload -u __token__ -p pypi-«AgEIcHlwaS5vcmc{W120}» dist/*
poetry config pypi-token.pypi pypi-«AgEIcHlwaS5vcmc{W120}»
mysql -u root -p«sd3R%KFZXimd» -h db app
PGPASSWORD=«Marble!7» psql -h db -U postgres
redis-cli -h r -a «bj5gr7CT9pFNmn» ping
mongosh "mongodb+srv://joe:«giraffe_tomato»@c0.abcde.mongodb.net/x"
clickhouse-client --host c --password «orchid42»
influx -username joe -password «LanternPickle»
Server=db;Database=x;User Id=sa;Password=«bj5gr7CT9pFNmn»;
Data Source=db;Integrated Security=no;User ID=u;Password='«Gdg6-JPZn2ass»'
DefaultEndpointsProtocol=https;AccountName=x;AccountKey=«{S86}==»;EndpointSuffix=core.windows.net
Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{S43}=»
InstrumentationKey=«{H8}-1a2b-4c3d-9e8f-{H12}»;IngestionEndpoint=https://x
jdbc:sqlserver://db;user=sa;password=«Gdg6-JPZn2ass»;
joe:$apr1$«{B8}$»{B22}
<server><id>x</id><username>joe</username><password>«cobalt-walnut»</password></server>
<setting name="SmtpPassword" serializeAs="String"><value>«Marble!7»</value></setting>
<input type="password" name="password" value="«orchid42»">
<input type="hidden" name="csrf_token" value="«{W43}»">
<meta name="csrf-token" content="«{S86}=="»>
<key>API_SECRET</key>\n<string>«{H32}»</string>
<param name="token" value="«{B32}»"/>
<user username="tomcat" password="«Marble!7»" roles="manager-gui"/>
{"name": "API_KEY", "value": "«{H32}»"}
{"Name":"DB_PASSWORD","Value":"«LanternPickle»"}
- name: DB_PASSWORD\n  value: "«giraffe_tomato»"
{"ParameterKey":"MasterUserPassword","ParameterValue":"«HarbourVelvet»"}
{"field": "password", "content": "«cobalt-walnut»"}
data:\n  password: «{S16}=»
stringData:\n  api-key: «{H32}»
user,password\njoe,«swordfish»
name,api_key,active\nprod,«{H32}»,true
username\tpassword\njoe\t«Marble!7»
set password = «orchid42»
SET PASSWORD FOR 'joe'@'%' = PASSWORD('«LanternPickle»');
CREATE USER joe IDENTIFIED BY '«giraffe_tomato»';
requirepass «orchid42»
rabbitmqctl add_user joe «giraffe_tomato»
net user joe «k9!Tq2vLwz» /add
echo "root:«Marble!7»" | chpasswd
useradd joe -p '«sd3R%KFZXimd»'
  wpa-psk «giraffe_tomato»
WIFI_PASS = "«cobalt-walnut»"
#define WIFI_PASSWORD "«Marble!7»"
static const char* pass = "«orchid42»";
String password = "«LanternPickle»";
let password = "«HklxHbuQbF»";
$password = '«giraffe_tomato»';
my $pass = q{«swordfish»};
api_key <- "«{H32}»"
Sys.setenv(API_KEY = "«{H32}»")
setenv API_SECRET «{H40}»
set -x GITHUB_TOKEN «{H40}»
twilio = Client('AC{H32}', '«{H32}»')
new Pusher({appId: "1", key: "{H20}", secret: "«{H20}»", cluster: "eu"})
cloudinary://123456789012345:«{W27}»@demo
Minio("play.min.io", "{U20}", "«{S40}»")
server.login('joe', '«HarbourVelvet»')
imap.login("joe", "«w-LL7p-vSHQj5o»")
HTTPBasicAuth('joe', '«sd3R%KFZXimd»')
axios.get(url, {auth: {username: 'joe', password: '«LanternPickle»'}})
pymysql.connect(host="db", user="u", passwd="«giraffe_tomato»")
new PDO('mysql:host=db', 'root', '«cobalt-walnut»');
DriverManager.getConnection(url, "sa", "«Marble!7»");
new NetworkCredential("joe", "«orchid42»")
ConvertTo-SecureString "«LanternPickle»" -AsPlainText -Force
define('DB_PASSWORD', '«HklxHbuQbF»');
define( 'AUTH_KEY', '«Gdg6-JPZn2assk9!Tq2vLwzw-LL7p-vSHQj5o» ' );
SECRET_KEY = 'django-insecure-«k9!Tq2vLwzw-LL7p-vSHQj5obj5gr7CT9pFNmn»'
NEXTAUTH_SECRET=«{S43}=»
ENCRYPTION_KEY=«{H64}»
cookie_secret: «{S43}=»
hash_salt: «{W74}»
tailscale up --authkey tskey-auth-«{B12}-{B32}»
cloudflared tunnel run --token «eyJ{W150}»
ngrok config add-authtoken «2{B26}_{B21}»
The password is «HarbourVelvet», don't tell anybody.
the wifi password: «cobalt-walnut»
ok so login with admin and «Gdg6-JPZn2ass»
user: admin / pass: «orchid42»
admin:«w-LL7p-vSHQj5o»
my pin is «{D4}»
Your verification code is «{D6}».
«{D6}» is your Google verification code
I've rotated the key, the new one is «{B40}»
creds: joe / «HklxHbuQbF»
credentials are joe:«w-LL7p-vSHQj5o»
contraseña: «orchid42»
senha: «LanternPickle»
密码: «sd3R%KFZXimd»
пароль: «giraffe_tomato»
パスワード: «k9!Tq2vLwz»
seed phrase: «orchid velvet thunder pickle monsoon cobalt walnut marble giraffe sunshine dragon harbour»
PRIVATE_KEY=«{H64}»
"headers": {"authorization": "«{W40}»"}
{"body":"{\\\"password\\\":\\\"«orchid42»\\\"}"}
Set-Cookie: session=«{W60}»; HttpOnly
document.cookie = "auth=«{W60}»"
localStorage.setItem("token", "«{W60}»")
?sv=2022-11-02&ss=b&sig=«{W43}%3D»
?sig=«{W43}%3D»&se=2024-01-01
&hmac=«{H64}»&shop=x.myshopify.com
notion «secret_{B43}»
trello key {H32} and token «{H64}»
sonar.login=«{H40}»
snyk auth «{H8}-1a2b-4c3d-9e8f-{H12}»
travis login --github-token «{H40}»
buildkite-agent start --token «{H50}»
analytics.load("«{B32}»")
segment write key «{B32}»
intercom «dG9r{S56}=»
PINECONE = '«{H8}-1a2b-4c3d-9e8f-{H12}»'
sonarr:\n  url: http://sonarr:8989\n  key: «{H32}»
key: «{H32}» # radarr
assemblyai.settings.api_key = "«{H32}»"
aai.settings.api_key = "«{H32}»"
honeybadger:\n  api_key: "«{H8}»"
Bugsnag.start({ apiKey: '«{H32}»' })
datadogRum.init({ clientToken: 'pub«{H32}»' })
NewRelic.start(withApplicationToken:"«{H42}»")
Mixpanel.mainInstance().token = "«{H32}»"
OneSignal.initialize("«{H8}-1a2b-4c3d-9e8f-{H12}»")
Appcues.setup("«{D5}-{H8}-1a2b-4c3d-9e8f-{H12}»")
sg := sendgrid.NewSendClient("SG.«{W22}.{W43}»")
groq = Groq(api_key="gsk_«{B52}»")
voyageai.Client(api_key="pa-«{W43}»")
genai.configure(api_key="AIza«{W35}»")
pc = Pinecone(api_key="«{H8}-1a2b-4c3d-9e8f-{H12}»")
meilisearch.Client('http://127.0.0.1:7700', '«{W43}»')
ChatOpenAI(openai_api_key="«{B48}»")
TavilyClient("tvly-«{B32}»")
os.environ["LANGCHAIN_API_KEY"] = "lsv2_pt_«{H32}_{H10}»"
os.environ['WANDB_API_KEY'] = '«{H40}»'
huggingface-cli login --token hf_«{B34}»
kaggle.json: {"username":"joe","key":"«{H32}»"}
[kaggle]\nkey = «{H32}»
tfc login: token "«{B14}».atlasv1.{W67}"
provider "datadog" {\n  api_key = "«{H32}»"\n  app_key = "{H40}"\n}
master_password = "«HklxHbuQbF»"
  existingKey: no\n  adminPassword: «LanternPickle»
apiVersion: v1\nkind: Secret\nstringData:\n  token: «{B32}»
    command: redis-server --requirepass «Marble!7»
git clone https://oauth2:«glpat-{W20}»@gitlab.com/a/b.git
git clone https://«{H40}»@github.com/a/b.git
git remote set-url origin https://joe:«ghp_{B36}»@github.com/a/b
sftp: joe / «k9!Tq2vLwz»
keytool -storepass «HklxHbuQbF» -keypass giraffe_tomato -list
ssh-keygen -N "«cobalt-walnut»" -f key
snmpget -v3 -u joe -A «Marble!7» -X orchid42 host
kinit joe <<< «LanternPickle»
[+] valid credentials admin:«k9!Tq2vLwz»
impacket-psexec DOM/joe:'«w-LL7p-vSHQj5o»'@10.0.0.1
net use Z: \\\\srv\\share «bj5gr7CT9pFNmn» /user:joe
Get-Content | Set-ADAccountPassword -NewPassword (ConvertTo-SecureString -AsPlainText "«cobalt-walnut»" -Force)
defaults write com.x apiToken «{B32}»
security add-generic-password -a joe -s x -w «sd3R%KFZXimd»
bw unlock --passwordenv X «w-LL7p-vSHQj5o»
BW_SESSION="«{S86}=="»
client.login(username="joe", password="«orchid42»")
create_engine("postgresql://joe:«HklxHbuQbF»@db/x")
new Redis({ host: 'r', password: '«swordfish»' })
nodemailer.createTransport({ auth: { user: 'joe', pass: '«cobalt-walnut»' } })
jwt.sign(payload, '«sd3R%KFZXimdGdg6-JPZn2ass»')
app.secret_key = b'«k9!Tq2vLwz»'
app.config['SECRET_KEY'] = '«{H48}»'
Rails.application.credentials.secret_key_base = "«{H128}»"
AES.new("«{B32}», AES.MODE_CBC)
key = bytes.fromhex("«{H64}»")
encryption_key: !!binary «{S43}=»
token := "«{B32}»" // staging
auth: Basic «{S36}==»
-H 'authorization: «{B40}»'
headers: { 'x-auth-token': '«{H8}-1a2b-4c3d-9e8f-{H12}»' }
req.Header.Add("X-Secret", "«{B20}»")
https://s3.amazonaws.com/b/k?AWSAccessKeyId=AKIA{U16}&Signature=«{B27}%3D»&Expires=1
https://x.blob.core.windows.net/c/b?sp=r&sv=2022&sr=b&sig=«{B43}%3D»
Pass for the guest network is «HarbourVelvet»
guest wifi: CafeGuest / «cobalt-walnut»
door pin: «{D4}»
use «sd3R%KFZXimd» as the password
try «Gdg6-JPZn2ass» as password please
username is joe and password is «w-LL7p-vSHQj5o»
I set the admin password to «bj5gr7CT9pFNmn».
la password è «Gdg6-JPZn2ass»
hasło to «k9!Tq2vLwz»
wachtwoord: «w-LL7p-vSHQj5o»
my api key for them is «{B32}»
secret = «{B32}» (rotate me)
license key: «{U5}-{U5}-{U5}-{U5}-{U5}»
product key «{U5}-{U5}-{U5}-{U5}-{U5}»
xprv«{B107}»
solana secret: «{B88}»
"""
HARMLESS = r"""
EnvAuthToken = envNamespace + "AUTH_TOKEN"
api_key: Final = config.get("api_key")
auth_token: os.environ/IBM_GUARDRAILS_AUTH_TOKEN
telegraf  ALL=(root) NOPASSWD: IPTABLESSHOW
GLESYS_API_KEY=yyyyy
Token: '#dddddd',
github commit {H40}
gitlab pipeline for {H40} failed
checkout {H40} from bitbucket
Sentry issue {H32} is new
{"service":"datadog","trace":"{H32}"}
openai response resp_{H48}
anthropic request-id: req_01{B22}
run {H8}-1a2b-4c3d-9e8f-{H12} of thread {H8}-1a2b-4c3d-9e8f-{H12}
request {H8}-1a2b-4c3d-9e8f-{H12} took 12 ms
X-Amzn-Trace-Id: Root=1-{H8}-{H24}
traceparent: 00-{H32}-{H16}-01
b3: {H32}-{H16}-1
message id {H8}-1a2b-4c3d-9e8f-{H12}
<CA+{W60}@mail.gmail.com>
Message-ID: <{H8}-1a2b-4c3d-9e8f-{H12}@example.com>
docker pull redis@sha256:{H64}
Digest: sha256:{H64}
redis container {H12} started
container {H64} exited
{"_id": {"$oid": "{H24}"}}
notion page {H32}
slack channel C{U9} message {D10}.{D6}
slack team T{U8}
aws request id {H8}-1a2b-4c3d-9e8f-{H12}
AWS account {D12}
arn:aws:iam::{D12}:role/app
azure tenant id: {H8}-1a2b-4c3d-9e8f-{H12}
cloudflare ray id {H16}-FRA
sendgrid x-message-id {W22}
etag: "{H32}"
MD5 ({B6}.iso) = {H32}
{H32}  file.txt
{H64}  dist/app.tar.gz
github.com/pkg/errors v0.9.1 h1:{S43}=
"version": "{H40}"
uses: actions/checkout@{H40}
git diff {H7}..{H7}
index {H7}..{H7} 100644
image: ghcr.io/a/b@sha256:{H64}
device {H8}-1a2b-4c3d-9e8f-{H12} connected
PARTUUID={H8}-02
guid: {H32}
machine-id {H32}
boot id: {H32}
fingerprint {H40}
SHA256:{S43} joe@host (ED25519)
gpg: key {H16}: public key imported
Primary key fingerprint: {H40}
serial: {H32}
ipfs Qm{B44}
session {H8}-1a2b-4c3d-9e8f-{H12} closed
file-{B24} uploaded to openai
thread_{B24} run_{B24}
The password must have 12 characters.
I forgot my password, can you reset it?
token usage: 1200 of 8000
the token is refreshed every hour
pass: true
foreign key (user_id) references users(id)
api_key = os.getenv("API_KEY")
token = await get_token(session)
password = input("Password: ")
credentials: include
credentials = service_account.Credentials.from_file(path)
if password != confirm_password:
def login(username, password):
analytics.track("order_completed")
stripe.webhooks.constructEvent(body, sig, secret)
mixpanel.track('page_view')
Client(host="db.example.com", region="eu-central-1")
login("joe@example.com", password)
admin/users/settings
user: admin / role: editor
root:x:0:0:root:/root:/bin/bash
creds: see 1Password
--password-stdin
docker login -u joe -p "$PASS"
mysql -u root -p
helm install x --set auth.existingSecret=db-secret
valueFrom: {secretKeyRef: {name: db, key: password}}
{"name":"max_tokens","value":"4096"}
{"key": "password", "label": "Password"}
<label for="password">Password</label>
<meta name="viewport" content="width=device-width, initial-scale=1">
IDENTIFIED BY ?
The password is stored encrypted.
his secret: patience
pin: connected to ground
pin 13 is the led
otp is disabled
code 404 is not found
your verification code was sent
your order 471715 has shipped
set password policy minimum length 12
password authentication failed for user "joe"
bearer of good news
"""


def secrets() -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    placed = [filled(f"{each}{{D1}}", 7_000 + seed)[0][:-1] for seed, each in enumerate(lines_of(PLACED))]
    return [
        (each.replace("«", "").replace("»", ""), each.partition("«")[2].partition("»")[0]) for each in placed
    ]


def harmless() -> list[str]:
    """Texts without a secret."""
    return [filled(f"{each}{{D1}}", 8_000 + seed)[0][:-1] for seed, each in enumerate(lines_of(HARMLESS))]
