"""Passes to Azure Blob Storage: signatures (SAS) made with a user delegation key, one for each
folder of the run that machines read or write. The key is asked for as whoever we are at Entra, the
signatures are made here; no account key is used, and those that were lent end with the key.

A signature is for a directory only where the account has a hierarchical namespace. In a flat one
it is for a blob or for the whole container, which is all runs of the store: no pass is lent there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from urllib import error as urlerror
from urllib import request as urlrequest
from urllib.parse import urlencode
from xml.etree import ElementTree

from tradewind.base import clock, endpoints
from tradewind.base.errors import InvalidValue, NoAccess, SourceFailed
from tradewind.model.places import DELETED_BY_MACHINES, WRITTEN_BY_MACHINES
from tradewind.store.lending.base import Pass

LONGEST_S = 6 * 86_400
"""Azure allows seven days, from a start that lies a little in the past."""
_SKEW = timedelta(minutes=15)
"""So much earlier the key begins: clocks differ."""
_VERSION = "2020-12-06"
_WAIT_S = 30.0
_FIELDS = ("SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService")
_RESOURCE = "https://storage.azure.com"

Key = dict[str, str]


class AzureLender:
    longest_s = LONGEST_S

    def __init__(
        self, store_url: str, env: Mapping[str, str], *, token: Callable[[], str] | None = None
    ) -> None:
        self._url, self._env = store_url.rstrip("/"), env
        self._account = (
            env.get("AZURE_STORAGE_ACCOUNT") or env.get("AZURE_STORAGE_ACCOUNT_NAME") or ""
        )
        if not self._account:
            raise NoAccess("no Azure storage account is named", hint="set AZURE_STORAGE_ACCOUNT")
        own = env.get("AZURE_STORAGE_SERVICE_ENDPOINT") or env.get("AZURE_STORAGE_ENDPOINT") or ""
        endpoints.check(own, env)
        self._endpoint = (own or f"https://{self._account}.blob.core.windows.net").rstrip("/")
        self._token = token or (lambda: default_token(env))
        self._lock = threading.Lock()
        self._checked = False

    @property
    def environment(self) -> dict[str, str]:
        made = {"AZURE_STORAGE_ACCOUNT": self._account}
        for name in ("AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_STORAGE_ENDPOINT", endpoints.ALLOW):
            if self._env.get(name):
                made[name] = self._env[name]
        return made

    def lend(self, run_id: str, for_s: int) -> Pass:
        for_s = min(for_s, LONGEST_S)
        token = self._token()
        with self._lock:
            if not self._checked:
                self.check(token)
                self._checked = True
        key = self.delegation_key(token, for_s)
        container, _, prefix = self._url.removeprefix("az://").partition("/")
        prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        signed = {
            f"{prefix}{folder}": self.signed(key, container, f"{prefix}{folder}", rights)
            for folder, rights in folders(run_id).items()
        }
        return Pass(store_url=self._url, run_id=run_id, for_s=for_s, credentials=signed)

    def check(self, token: str) -> None:
        """Raises where the account is flat."""
        headers, _ = self._asked("GET", "restype=account&comp=properties", token)
        if headers.get("x-ms-is-hns-enabled", "").lower() != "true":
            raise InvalidValue(
                f"no pass can be lent for {self._url}: the storage account {self._account} has no"
                " hierarchical namespace, so a pass would be good for every run in the container",
                hint="keep runs in an account with one (`az storage account create … --hns true`),"
                " or in s3:// or gs://",
            )

    def delegation_key(self, token: str, for_s: int) -> Key:
        """It ends when the pass does."""
        now = clock.now()
        start, end = _moment(now - _SKEW), _moment(now + timedelta(seconds=for_s))
        body = f"<KeyInfo><Start>{start}</Start><Expiry>{end}</Expiry></KeyInfo>"
        _, data = self._asked("POST", "restype=service&comp=userdelegationkey", token, body)
        try:
            told = {each.tag: each.text or "" for each in ElementTree.fromstring(data)}
            base64.b64decode(told["Value"], validate=True)
            return {name: told[name] for name in (*_FIELDS, "SignedVersion", "Value")}
        except (ElementTree.ParseError, KeyError, ValueError):
            raise SourceFailed("Azure has answered with no key to sign with") from None

    def signed(self, key: Key, container: str, folder: str, rights: str) -> str:
        """Of a directory; of the whole container where `folder` is empty."""
        path = folder.strip("/")
        place = f"/blob/{self._account}/{container}" + (f"/{path}" if path else "")
        kind, protocol = "d" if path else "c", "https"
        if endpoints.is_plain(self._endpoint):
            protocol = "https,http"
        begins, ends = key["SignedStart"], key["SignedExpiry"]
        parts = [rights, begins, ends, place, *(key[name] for name in _FIELDS)]
        parts += [key["SignedVersion"], "", "", "", "", protocol, _VERSION, kind]
        parts += [""] * 7  # a snapshot, an encryption scope and headers of answers
        secret = base64.b64decode(key["Value"])
        signature = hmac.new(secret, "\n".join(parts).encode(), hashlib.sha256).digest()
        query = {
            "sv": _VERSION,
            "sr": kind,
            "sp": rights,
            "st": begins,
            "se": ends,
            "spr": protocol,
            **dict(zip(("skoid", "sktid", "skt", "ske", "sks"), parts[4:9], strict=True)),
            "skv": key["SignedVersion"],
            "sig": base64.b64encode(signature).decode(),
        }
        if path:
            query["sdd"] = str(path.count("/") + 1)
        return urlencode(query)

    def _asked(
        self, method: str, query: str, token: str, body: str = ""
    ) -> tuple[Mapping[str, str], bytes]:
        asked = urlrequest.Request(
            f"{self._endpoint}/?{query}",
            data=body.encode() if body else None,
            method=method,
            headers={
                "authorization": f"Bearer {token}",
                "x-ms-version": _VERSION,
                "content-type": "application/xml",
            },
        )
        try:
            with urlrequest.urlopen(asked, timeout=_WAIT_S) as answer:
                head = {name.lower(): value for name, value in answer.headers.items()}
                return head, answer.read(1 << 20)
        except urlerror.HTTPError as error:
            error.close()
            if error.code in (401, 403):
                raise NoAccess(
                    f"Azure has lent no pass to {self._url}: {error.code} {error.reason}",
                    hint="who lends needs the roles Storage Blob Delegator and Storage Blob Data"
                    f" Contributor at the account {self._account}",
                ) from None
            raise SourceFailed(f"Azure has lent no pass: {error.code} {error.reason}") from None
        except OSError as error:
            raise SourceFailed(f"Azure has lent no pass: {error}", hint="try again later") from None


def folders(run_id: str) -> dict[str, str]:
    """What machines may where: read, list, add, create, write, delete. A folder within another has
    all that it needs, as one signature is used for each request."""
    run = f"runs/{run_id}/"
    made = {run: "rl", f"passes/{run_id}/": "r"}
    for folder in WRITTEN_BY_MACHINES:
        made[f"{run}{folder}/"] = "racwdl" if folder in DELETED_BY_MACHINES else "racwl"
    return made


def default_token(env: Mapping[str, str]) -> str:
    """As a service principal by its variables, else as whoever `az` knows."""
    names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
    tenant, client, secret = (env.get(name, "") for name in names)
    if tenant and client and secret:
        return _of_principal(tenant, client, secret)
    command = ["az", "account", "get-access-token", "--resource", _RESOURCE, "--output", "json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=True)
        return str(json.loads(done.stdout)["accessToken"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        raise NoAccess(
            "there are no Azure credentials to lend from: `az account get-access-token` failed",
            hint=f"`az login`, or set {', '.join(names)}",
        ) from None


def _of_principal(tenant: str, client: str, secret: str) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": client,
        "client_secret": secret,
        "scope": f"{_RESOURCE}/.default",
    }
    address = f"https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token"
    asked = urlrequest.Request(address, data=urlencode(form).encode(), method="POST")
    try:
        with urlrequest.urlopen(asked, timeout=_WAIT_S) as answer:
            return str(json.loads(answer.read(1 << 20))["access_token"])
    except (OSError, ValueError, KeyError) as error:
        raise NoAccess(
            f"Entra has refused AZURE_CLIENT_ID: {type(error).__name__}",
            hint="check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
        ) from None


def _moment(when: object) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"
