"""Who asks: service accounts and their keys, and the tokens that they were given.

A token is had by the JWT grant of a key (what google-auth does with a key file), by the metadata
server of a machine, by iamcredentials, in exchange for another one with a boundary (STS), which
ends when that does, or for what an identity provider outside of Google says of its subject
(workload identity federation). Known lies: every pool exists, and what its provider says is the
subject's name, signed by nobody; people log in as service accounts do; scopes
are written down, and looked at by nobody; a key is valid for ever; user logins (refresh tokens) are
taken for whoever the client id names; when something ends is told by the computer's clock,
whatever the equipment's says (`expire_tokens` is for that).
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.cloud.faces.google.problems import Problem

Boundary = tuple[dict[str, Any], ...]
"""Rules of a credential access boundary."""
TOKEN_S = 3600
PRINCIPAL = "principal://"
"""What a subject of a workload identity pool is called by instead of an email."""
EXPIRED = "expired"
"""A refresh token, of a login that has ended."""


@dataclass
class Who:
    email: str

    @property
    def member(self) -> str:
        if self.email.startswith(PRINCIPAL):
            return self.email
        sort = "serviceAccount" if self.email.endswith("gserviceaccount.com") else "user"
        return f"{sort}:{self.email}"


@dataclass
class Account:
    email: str
    unique_id: str
    display_name: str = ""
    description: str = ""
    disabled: bool = False
    keys: dict[str, Any] = field(default_factory=dict)
    """Public ones, by their ids."""


@dataclass
class Token:
    who: Who
    until: float
    scopes: str = ""
    boundary: Boundary | None = None
    """Of a token that was made of another one: what is left of its rights."""


class Identities:
    """By the computer's clock, which is that of whoever signs and shows something."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.accounts: dict[str, Account] = {}
        self.tokens: dict[str, Token] = {}
        self._system_key: Any = None
        self.signed = 0

    def make(self, email: str, display_name: str = "", description: str = "") -> Account:
        number = f"1{len(self.accounts):020d}"
        made = Account(email, number, display_name, description)
        self.accounts[email] = made
        return made

    def key_file(self, email: str, project: str, url: str) -> dict[str, str]:
        """A key file, as the console would give one."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        account = self.accounts.get(email) or self.make(email)
        number = secrets.token_hex(20)
        account.keys[number] = private.public_key()
        pem = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return {
            "type": "service_account",
            "project_id": project,
            "private_key_id": number,
            "private_key": pem.decode(),
            "client_email": email,
            "client_id": account.unique_id,
            "auth_uri": f"{url}/o/oauth2/auth",
            "token_uri": f"{url}/token",
            "universe_domain": "googleapis.com",
        }

    # -- tokens ------------------------------------------------------------------------------------

    def token(self, who: Who, scopes: str = "", for_s: float = TOKEN_S) -> str:
        made = f"ya29.{secrets.token_urlsafe(24)}"
        self.tokens[made] = Token(who, self._now() + for_s, scopes)
        return made

    def granted(self, form: dict[str, str]) -> dict[str, Any]:
        """By the token endpoint; raises Problem."""
        grant = form.get("grant_type", "")
        if grant == "refresh_token":
            if form.get("refresh_token") == EXPIRED:
                raise Problem(400, "Token has been expired or revoked.", "invalid_grant")
            return self._told(Who(form.get("client_id", "user@example.com")), "")
        if grant != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            raise Problem(400, f"Unsupported grant_type: {grant}", "unsupported_grant_type")
        claims = self.claims(form.get("assertion", ""))
        return self._told(Who(str(claims["iss"])), str(claims.get("scope", "")))

    def exchanged(self, form: dict[str, str]) -> dict[str, Any]:
        """By STS. Raises Problem."""
        if form.get("subject_token_type") != _ACCESS_TOKEN:
            return self._federated(form)
        return self._bounded(form)

    def _federated(self, form: dict[str, str]) -> dict[str, Any]:
        """For somebody of a pool."""
        pool = _AUDIENCE.fullmatch(form.get("audience", ""))
        if form.get("subject_token_type") not in _OUTSIDE or pool is None:
            raise Problem(400, "Invalid audience or subject_token_type.", "invalid_request")
        if not form.get("subject_token"):
            raise Problem(400, "The given credential is rejected.", "invalid_grant")
        who = Who(f"{PRINCIPAL}{pool[1]}/subject/{form['subject_token']}")
        return {**self._told(who, form.get("scope", "")), "issued_token_type": _ACCESS_TOKEN}

    def _bounded(self, form: dict[str, str]) -> dict[str, Any]:
        """Less than the token that is shown may do."""
        for name, wanted in _EXCHANGE.items():
            if form.get(name) != wanted:
                raise Problem(400, f"Invalid {name}: {form.get(name)}", "invalid_request")
        shown = self.known(form.get("subject_token", ""))
        if shown is None or self.expired(shown):
            raise Problem(400, "The given subject token is invalid or expired.", "invalid_grant")
        if shown.boundary is not None:
            raise Problem(400, "The subject token is downscoped already.", "invalid_request")
        try:
            rules = json.loads(form.get("options", ""))["accessBoundary"]["accessBoundaryRules"]
        except (ValueError, KeyError, TypeError):
            raise Problem(400, "Invalid options.", "invalid_request") from None
        if not 1 <= len(rules) <= _MOST_RULES:
            raise Problem(400, "An access boundary has 1 to 10 rules.", "invalid_request")
        for rule in rules:
            _check_rule(rule)
        made = self.token(shown.who, shown.scopes, shown.until - self._now())
        self.tokens[made].boundary = tuple(rules)
        left = int(shown.until - self._now())
        return {
            "access_token": made,
            "issued_token_type": _EXCHANGE["requested_token_type"],
            "token_type": "Bearer",
            "expires_in": left,
        }

    def _told(self, who: Who, scopes: str) -> dict[str, Any]:
        token = self.token(who, scopes)
        return {"access_token": token, "expires_in": TOKEN_S - 1, "token_type": "Bearer"}

    def claims(self, assertion: str) -> dict[str, Any]:
        try:
            head, body, signature = assertion.split(".")
            header, claims = json.loads(_bytes(head)), json.loads(_bytes(body))
            email, number = claims["iss"], header["kid"]
        except (ValueError, KeyError, TypeError):
            raise Problem(400, "Invalid JWT", "invalid_grant") from None
        account = self.accounts.get(email)
        if account is None or account.disabled:
            raise Problem(400, "Invalid grant: account not found", "invalid_grant")
        key = account.keys.get(number)
        if key is None or not verified(key, f"{head}.{body}".encode(), _bytes(signature)):
            raise Problem(400, "Invalid JWT Signature.", "invalid_grant")
        now = self._now()
        if not claims.get("iat", 0) - 600 <= now <= claims.get("exp", 0) + 600:
            raise Problem(
                400,
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable"
                " timeframe. Check your iat and exp values in the JWT claim.",
                "invalid_grant",
            )
        found: dict[str, Any] = claims
        return found

    def known(self, token: str) -> Token | None:
        return self.tokens.get(token)

    def expired(self, token: Token) -> bool:
        return token.until < self._now()

    # -- signatures --------------------------------------------------------------------------------

    def sign(self, email: str, data: bytes) -> tuple[str, bytes]:
        """By a key of Google's own for that account (signBlob)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        if self._system_key is None:
            self._system_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.accounts[email].keys.setdefault("system", self._system_key.public_key())
        return "system", self._system_key.sign(data, padding.PKCS1v15(), hashes.SHA256())

    def signature_of(self, email: str, data: bytes, signature: bytes) -> bool:
        account = self.accounts.get(email)
        return account is not None and any(
            verified(key, data, signature) for key in account.keys.values()
        )


_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": _ACCESS_TOKEN,
    "requested_token_type": _ACCESS_TOKEN,
}
_OUTSIDE = tuple(f"urn:ietf:params:oauth:token-type:{each}" for each in ("jwt", "id_token"))
_AUDIENCE = re.compile(
    r"//(iam\.googleapis\.com/projects/\d+/locations/global/workloadIdentityPools/[a-z0-9-]+)"
    r"/providers/[a-z0-9-]+"
)
_MOST_RULES = 10
_LONGEST_CONDITION = 2048


def _check_rule(rule: dict[str, Any]) -> None:
    """As Google's page on boundaries has them."""
    where, what = rule.get("availableResource", ""), rule.get("availablePermissions", [])
    condition = rule.get("availabilityCondition", {}).get("expression", "")
    if not where.startswith("//storage.googleapis.com/projects/_/buckets/"):
        raise Problem(400, f"Invalid availableResource: {where}", "invalid_request")
    if not what or any(not each.startswith("inRole:") for each in what):
        raise Problem(400, f"Invalid availablePermissions: {what}", "invalid_request")
    if len(condition) > _LONGEST_CONDITION:
        raise Problem(400, "The condition is too long.", "invalid_request")


def verified(key: Any, data: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    try:
        key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
