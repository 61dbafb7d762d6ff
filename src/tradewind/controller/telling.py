"""Warnings about projects' months, sent to where `budgets.yaml` says: a webhook, a mailbox.

At 50, 80 and 100 %, once for each project, month, amount and channel: a mark in the store
(`told/…`) is created when a message has been taken. So what could not be sent is sent later, and
two controllers that are at it in the same instant may both send it: rather twice than never.

A webhook is sent the JSON that Slack takes, and Mattermost and Discord (`…/slack`) with it. No
message, address or error has a secret's value in it.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from smtplib import SMTP, SMTP_SSL, SMTPException
from typing import Any
from urllib.parse import urlsplit

from msgspec import json

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed, TradewindError
from tradewind.base.units import format_money
from tradewind.ledger.budgets import Standing
from tradewind.model import secrets
from tradewind.model.channels import NONE, TLS, Channels, Mail
from tradewind.store.base import Store

TOLD = "told/"
_TIMEOUT_S = 10.0
_AGAIN_S = 300.0
"""A channel that failed is left alone for so long: it would hold up each pass."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_BYTES = 65_536


class Teller:
    """Of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: set[str] = set()
        self._failed: dict[str, tuple[float, TradewindError]] = {}

    def tell(self, channels: Channels, standings: Iterable[Standing]) -> list[TradewindError]:
        """Sends what is due, and says what could not be sent."""
        troubles: dict[str, TradewindError] = {}
        for stands in standings:
            if not stands.crossed:
                continue
            for channel in channels.names:
                mark = _mark(stands, channel)
                if channel in troubles or self._is_told(mark):
                    continue
                trouble = self._rests(channel) or self._send(channels, channel, stands)
                if trouble is not None:
                    troubles[channel] = trouble
                    continue
                self._told.add(mark)  # whether the store takes the mark or not: once is enough
                try:
                    self._store.create(mark, json.encode({"at": clock.now()}))
                except TradewindError as error:
                    troubles.setdefault("", error)
        return list(troubles.values())

    def _is_told(self, mark: str) -> bool:
        if mark not in self._told:
            with suppress(NotFound):
                self._store.get(mark, most=_MOST_BYTES)
                self._told.add(mark)
        return mark in self._told

    def _rests(self, channel: str) -> TradewindError | None:
        failed = self._failed.get(channel)
        return failed[1] if failed and clock.stopwatch() - failed[0] < _AGAIN_S else None

    def _send(self, channels: Channels, channel: str, stands: Standing) -> TradewindError | None:
        title, text, name = subject(stands), words(stands), _mark(stands, channel)
        trouble = _tried(channels, channel, title, text, _fields(stands), name)
        if trouble is None:
            self._failed.pop(channel, None)
        else:
            self._failed[channel] = (clock.stopwatch(), trouble)
        return trouble


def trial(channels: Channels) -> list[TradewindError]:
    """A message to each, whatever is spent; what could not be sent."""
    title, text = "Tradewind: a trial", "A trial: warnings about budgets come here."
    tried = [
        _tried(channels, channel, title, text, {}, clock.new_id("trial"))
        for channel in channels.names
    ]
    return [trouble for trouble in tried if trouble is not None]


def _tried(
    channels: Channels, channel: str, title: str, text: str, fields: Mapping[str, str], name: str
) -> TradewindError | None:
    try:
        send(channels, channel, title, text, fields, name)
    except TradewindError as error:
        return error
    except Exception as error:  # its words may have a part of the secret in them
        return SourceFailed(
            f"tell.{channel}: the message could not be sent: {type(error).__name__}",
            hint="check the address or password that it names: tradewind cost --warn test",
        )
    return None


def subject(stands: Standing) -> str:
    project = stands.project or "runs without a project"
    return f"Tradewind: {project} has spent {100 * stands.share:.0f}% of {stands.month}"


def words(stands: Standing) -> str:
    spent, month = (format_money(each, digits=2) for each in (stands.spent, stands.budget.month))
    project = stands.project or "Runs without a project"
    return f"{project}: {spent} of {month} in {stands.month}: {stands.words}."


def _fields(stands: Standing) -> dict[str, str]:
    return {
        "Project": stands.project or "(none)",
        "Month": stands.month,
        "Spent": f"{format_money(stands.spent, digits=2)} ({100 * stands.share:.0f}%)",
        "Budget": format_money(stands.budget.month, digits=2),
        "When it is spent": stands.budget.what,
    }


def _mark(stands: Standing, channel: str) -> str:
    """A name of a project may be anything: it is in here as its hash."""
    project = hashlib.sha256(stands.project.encode()).hexdigest()[:16]
    level = f"{stands.crossed[-1]:03d}-of-{stands.budget.month}"
    return f"{TOLD}{stands.month}/{project}/{level}-{channel}"


def send(
    channels: Channels, channel: str, title: str, text: str, fields: Mapping[str, str], name: str
) -> None:
    if channel == "webhook":
        _post(_secret("tell.webhook", channels.webhook), body(title, text, fields))
        return
    assert channels.mail is not None
    _mail(channels.mail, title, text, fields, name)


def body(title: str, text: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """As Slack's incoming webhooks take it. `text` alone says everything: it is what notifications
    and other programs show."""
    short: Sequence[dict[str, Any]] = [
        {"title": _escaped(name), "value": _escaped(value), "short": True}
        for name, value in fields.items()
    ]
    more = {"attachments": [{"color": "warning", "fallback": _escaped(text), "fields": short}]}
    return {"text": f"*{_escaped(title)}*\n{_escaped(text)}"} | (more if short else {})


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(address: str, document: Mapping[str, Any]) -> None:
    import urllib3

    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise InvalidValue(
            "tell.webhook: what its secret holds is no https address",
            hint="its whole content is the address: https://hooks.slack.com/services/…",
        )
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT_S, retries=False) as pool:
            # Only its status is of use: a body may be as long and as slow as its server likes.
            answer = pool.request(
                "POST", address, json=document, redirect=False, preload_content=False
            )
            answer.close()
    except urllib3.exceptions.HTTPError as error:
        # Its words may have the address in them.
        raise SourceFailed(
            f"tell.webhook: {parts.hostname} could not be reached: {type(error).__name__}",
            hint="tried again in five minutes",
        ) from None
    if not 200 <= answer.status < 300:
        raise SourceFailed(
            f"tell.webhook: {parts.hostname} refused the message: HTTP {answer.status}",
            hint="403, 404 and 410 mean that the webhook is not there any more: make another",
        )


def _mail(mail: Mail, title: str, text: str, fields: Mapping[str, str], name: str) -> None:
    message = EmailMessage()
    message["Subject"] = " ".join(title.split())  # a project's name may have lines
    message["From"], message["To"] = mail.sender, ", ".join(mail.to)
    message["Date"] = clock.now()
    # The same for who sends it twice: mailboxes show it once.
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    message["Message-ID"] = f"<tradewind-{digest}@{mail.sender.rpartition('@')[2]}>"
    lines = [f"{key}: {value}" for key, value in fields.items()]
    message.set_content("\n".join([text, "", *lines]))
    if mail.security == NONE and mail.password and mail.host not in _LOOPBACK:
        raise InvalidValue(
            "tell.mail: a password is not sent without TLS", hint="security: starttls, or tls"
        )
    password = _secret("tell.mail.password", mail.password) if mail.password else ""
    context = ssl.create_default_context()
    try:
        with _connected(mail, context) as smtp:
            if mail.user:
                smtp.login(mail.user, password)
            refused = smtp.send_message(message)
    except (OSError, SMTPException) as error:
        raise SourceFailed(
            f"tell.mail: {mail.host}:{mail.port} did not take the message: {_told(error)}",
            hint="tried again in five minutes",
        ) from None
    if refused:
        raise SourceFailed(f"tell.mail: {mail.host} refused {', '.join(sorted(refused))}")


def _connected(mail: Mail, context: ssl.SSLContext) -> SMTP:
    if mail.security == TLS:
        return SMTP_SSL(mail.host, mail.port, timeout=_TIMEOUT_S, context=context)
    smtp = SMTP(mail.host, mail.port, timeout=_TIMEOUT_S)
    if mail.security != NONE:
        try:
            smtp.starttls(context=context)
        except (OSError, SMTPException):
            smtp.close()
            raise
    return smtp


def _told(error: Exception) -> str:
    """A server's answer to a login may repeat what it was sent."""
    code = getattr(error, "smtp_code", None)
    return f"{type(error).__name__}{f' {code}' if code else ''}"


def _secret(field: str, where: str) -> str:
    from tradewind.providers import registry

    reference = secrets.parse(where)
    if reference.scheme != secrets.FILE:
        try:
            aboard = registry.aboard(reference.scheme.partition("-")[0])
            return aboard.secret(reference, rented=False).strip()
        except TradewindError as error:
            raise type(error)(f"{field} ({where}): {error.message}", hint=error.hint) from None
    try:
        with Path(reference.name).expanduser().open("rb") as stream:
            found = stream.read(_MOST_BYTES).decode("utf-8").strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise NoAccess(f"{field}: {reference.name} cannot be read: {why}") from None
    if not found or not found.isprintable():
        raise InvalidValue(f"{field}: {reference.name} is empty or is not one secret")
    return found
