"""Where warnings about budgets go, besides the journal: a webhook, a mailbox.

What is secret is a reference (model/secrets.py), never a value; a webhook's address is, since
whoever has it may write there.
"""

from __future__ import annotations

from msgspec import Struct

STARTTLS, TLS, NONE = "starttls", "tls", "none"
SECURITIES = (STARTTLS, TLS, NONE)


class Mail(Struct, frozen=True, kw_only=True):
    to: tuple[str, ...]
    sender: str
    host: str
    port: int
    security: str = STARTTLS
    user: str = ""
    password: str = ""
    """Where it is."""


class Channels(Struct, frozen=True, kw_only=True):
    webhook: str = ""
    """Where its address is."""
    mail: Mail | None = None

    def __bool__(self) -> bool:
        return bool(self.webhook or self.mail)

    @property
    def names(self) -> tuple[str, ...]:
        return ("webhook",) * bool(self.webhook) + ("mail",) * bool(self.mail)
