"""The words of key names that announce a secret, and of those that look like it and do not.

Lists alone: how a name is read is in `key_names.py`.
"""

from __future__ import annotations

# Words in a row at the end of a key name, however they are joined: api_key, apiKey, X-Api-Key.
DEFAULT_KEYS: tuple[str, ...] = (
    *("password", "passwords", "passwd", "passphrase", "passcode", "pwd", "pass", "password confirmation"),
    *(
        "pw",
        "psw",
        "pswd",
        "pswrd",
        "pasword",
        "passw",
        "passwrd",
        "pgpass",
        "psswd",
        "psswrd",
        "pssword",
        "paswd",
        "paswrd",
        "client assertion",
        "key data",
    ),
    *("passwort", "kennwort", "mot de passe", "contrasena", "senha", "wachtwoord", "haslo", "heslo", "sifre"),
    *("secret", "secrets", "client secret", "secret key", "secret access key", "secret string"),
    *("secret key base", "shared secret", "secretkey", "seed phrase", "mnemonic"),
    *("recovery phrase", "recovery code", "recovery codes", "backup codes", "recovery key"),
    *("token", "api key", "apikey", "api keys", "api token", "auth token", "access token", "refresh token"),
    *("access key", "account key", "private key", "signing key", "encryption key", "master key"),
    *("service key", "subscription key", "license key", "aes key", "hmac key", "storage key", "unseal key"),
    *("authorization", "proxy authorization", "auth header", "credential", "credentials", "creds"),
    *("cookie", "cookies", "set cookie", "jwt", "bearer", "connection string"),
    *("card number", "credit card", "cardnumber", "cvv", "cvc", "cvv2", "ssn", "social security number"),
)
# Names of many things, and of secrets too: they announce one when the value looks generated.
WEAK_KEYS: tuple[str, ...] = (
    *("key", "auth", "api", "session id", "sessionid", "sessid", "phpsessid", "jsessionid"),
    *("signature", "sig", "pin", "otp", "pin code", "otp code", "verification code", "session", "psk"),
    *(
        "appid",
        "sonar login",
        "csrf",
        "access key id",
        "cred",
        "webhook",
        "salt",
        "pat",
        "authentication",
        "hmac",
    ),
)
# Words behind a name that say which one it is, or how it is written: `DB_PASSWORD_PROD`, `SECRET_KEY_BASE64`.
STAGES = (
    *("production", "prod", "staging", "stage", "development", "dev", "testing", "test", "live", "sandbox"),
    *("local", "uat", "qa", "primary", "secondary", "new", "old", "current", "base64", "b64", "env"),
)
SUFFIXES = (*STAGES, "value", "string", "str", "text", "plain", "plaintext", "raw", "hex", "default")
# Names that end like a secret and are none: list cursors, and marks of a tokenizer.
HARMLESS_NAMES = frozenset(
    f"{word} token"
    for word in (
        *("page", "next", "sync", "continuation", "max", "eos", "bos", "pad", "stop", "mask", "unk", "sep"),
        *("cls", "special", "first", "last", "num", "id", "prev", "cursor", "cancellation"),
    )
) | {"existing secret", "pull secret", "pull secrets", "secret name", "no passwd", "nopasswd"}
# What a key is of when it is no secret: `cache_key`, `primary key`, `idempotency-key`.
PLAIN_KEYS = frozenset(
    {
        *("cache", "primary", "foreign", "public", "partition", "sort", "row", "object", "translation"),
        "message",
        *("idempotency", "group", "lookup", "i18n", "hash", "index", "unique", "routing", "route", "socket"),
        *("dedupe", "dedup", "shard", "range", "composite", "version", "map", "dict", "sub", "join"),
        *("item", "registry", "field", "column", "state", "event", "node", "thread", "task", "file"),
        *("image", "s3", "bucket", "blob", "block", "content", "record", "entity", "resource", "locale"),
        *("react", "ssh", "host", "publishable", "pub", "verify", "verification", "hot", "short"),
        *("arrow", "lock", "issue"),
    }
)
# Last words of names before random characters that are no secret: ids, digests, places, contents.
PUBLIC_NAMES = frozenset(
    {
        *("id", "ids", "uid", "uuid", "guid", "hash", "hashes", "sha", "sha1", "sha256", "sha512", "md5"),
        *("digest", "checksum", "crc", "commit", "rev", "revision", "ref", "tag", "version", "build"),
        *("release", "path", "file", "filename", "dir", "folder", "url", "uri", "urls", "href", "src"),
        *("link", "host", "hostname", "domain", "name", "title", "image", "img", "icon", "avatar"),
        *("etag", "cursor", "next", "prev", "previous", "after", "before", "page", "offset", "nonce"),
        *(
            "public",
            "pubkey",
            "address",
            "fingerprint",
            "serial",
            "thumbprint",
            "integrity",
            "resolved",
            "h1",
        ),
        *("content", "contents", "data", "body", "text", "html", "blob", "payload", "base64", "b64"),
        *("bytes", "raw", "value", "values", "input", "output", "result", "query", "slug", "css"),
        *("class", "style", "font", "hex", "color", "model", "trace", "span", "request", "response"),
        *("message", "thread", "run", "call", "node", "container", "pod", "instance", "cluster", "type"),
        *("kind", "schema", "format", "cid", "ipfs", "tx", "txid", "block", "wallet", "contract"),
        *("sitekey", "publishable", "client", "user", "username", "account", "customer", "order"),
        *("invoice", "event", "step", "task", "job", "item", "record", "row", "doc", "document", "video"),
        *("channel", "guild", "team", "org", "project", "repo", "branch", "object", "arn", "resource"),
        *("signature", "sig", "state", "key", "keys", "chunk", "entry"),
        *("str", "string", "bytes", "char", "any", "const", "let", "var", "return"),
    }
)
