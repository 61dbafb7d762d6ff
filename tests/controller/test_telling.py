"""Over real HTTP and SMTP on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests import tls
from tests.ledger.making import HOUR_S, NOON_S, events_of, moment
from tests.lifecycle.builders import AT, WAY
from tests.local_http import LocalHttp, Reply, Request
from tradewind.base import clock
from tradewind.base.errors import BadFile, InvalidValue, NoAccess, SourceFailed, TradewindError
from tradewind.controller import budgetfile, telling
from tradewind.controller.loop import Loop
from tradewind.controller.telling import TOLD, Teller
from tradewind.journal import journal
from tradewind.ledger.budgets import Budget, Standing
from tradewind.model.channels import NONE, STARTTLS, TLS, Channels, Mail
from tradewind.store.memory import MemoryStore

SECRET = "T000-B000-not-to-be-seen"


class Mailbox:
    """What came by SMTP; a login is `tw` with SECRET."""

    def __init__(self) -> None:
        self.got: list[EmailMessage] = []
        self.to: list[list[str]] = []
        self.answer = "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 (aiosmtpd calls it so)
        assert isinstance(envelope.content, bytes)
        if self.answer.startswith("250"):
            self.got.append(message_from_bytes(envelope.content, policy=default))
            self.to.append(envelope.rcpt_tos)
        return self.answer


class AnyPort(Controller):
    """It asks itself whether it is up, at the port that it was told: 0 is none."""

    def _trigger_server(self) -> None:
        sockets: Any = getattr(self.server, "sockets")  # noqa: B009 -- its type does not say so
        self.port = sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


def login(server: SMTP, session: Session, envelope: Envelope, how: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == SECRET.encode()
    return AuthResult(success=right, handled=False)


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    server = AnyPort(box, hostname="127.0.0.1", port=0)
    server.start()
    yield box, server.port
    server.stop()


def secret(folder: Path, text: str) -> str:
    path = folder / f"secret-{len(list(folder.iterdir()))}"
    path.write_text(text + "\n")
    return f"file:{path}"


def stands(
    spent: int, month: int = 100_000_000, project: str = "nlp", what: str = "stop"
) -> Standing:
    return Standing(
        project=project, month="2026-11", budget=Budget(month=month, what=what), spent=spent,
        committed=0, resets_s=moment("2026-12-01T00:00"),
    )  # fmt: skip


def test_a_webhook_is_sent_what_slack_takes_once_for_each_threshold(tmp_path: Path) -> None:
    got: list[Request] = []

    def answer(request: Request) -> str:
        got.append(request)
        return "ok"

    with LocalHttp() as server:
        server.on(f"/services/{SECRET}", answer)
        channels = Channels(webhook=secret(tmp_path, f"{server.url}/services/{SECRET}"))
        store = MemoryStore()
        teller = Teller(store)
        assert teller.tell(channels, [stands(30_000_000)]) == []
        assert got == []
        for spent in (50_000_000, 60_000_000, 85_000_000, 85_000_000, 101_000_000):
            assert teller.tell(channels, [stands(spent)]) == []
        assert Teller(store).tell(channels, [stands(110_000_000)]) == []  # another controller
    assert len(got) == 3
    first = got[0]
    assert (first.method, first.path) == ("POST", f"/services/{SECRET}")
    assert first.headers["content-type"] == "application/json"
    assert first.json["text"].startswith("*Tradewind: nlp has spent 50% of 2026-11*\n")
    assert "$50.00 left" in first.json["text"]
    fields = {each["title"]: each["value"] for each in first.json["attachments"][0]["fields"]}
    assert fields["Budget"] == "$100.00"
    assert "nothing more is bought before 2026-12-" in got[2].json["text"]


def test_marks_have_no_secret_and_a_raised_budget_is_told_of_anew(tmp_path: Path) -> None:
    with LocalHttp() as server:
        server.on(f"/{SECRET}", "ok")
        channels = Channels(webhook=secret(tmp_path, f"{server.url}/{SECRET}"))
        store = MemoryStore()
        teller = Teller(store)
        for month in (100_000_000, 100_000_000, 160_000_000):
            assert (
                teller.tell(channels, [stands(85_000_000, month, project="a/../b <!channel>")])
                == []
            )
        got = server.requests
    assert len(got) == 2
    assert "&lt;!channel&gt;" in got[0].json["text"]  # names do not call everybody
    marks = store.list_after(TOLD)
    assert len(marks) == 2
    assert all(SECRET not in mark and SECRET.encode() not in store.get(mark) for mark in marks)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_could_not_be_sent_is_tried_again_later(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [Reply(status=status, headers={"Location": "/elsewhere"}), Reply(b"ok")]
    seen: list[str] = []

    def answer(request: Request) -> Reply:
        seen.append(request.path)
        return replies.pop(0)

    now = [1000.0]
    monkeypatch.setattr(clock, "stopwatch", lambda: now[0])
    with LocalHttp() as server:
        server.on(f"/{SECRET}", answer)
        channels = Channels(webhook=secret(tmp_path, f"{server.url}/{SECRET}"))
        teller = Teller(MemoryStore())
        (error,) = teller.tell(channels, [stands(85_000_000), stands(1, 1, "b")])
        assert isinstance(error, SourceFailed)
        assert f"HTTP {status}" in error.message
        assert SECRET not in error.message + (error.hint or "")
        assert teller.tell(channels, [stands(85_000_000)]) == [error]  # not asked at each pass
        assert len(seen) == 1
        now[0] += 301
        assert teller.tell(channels, [stands(85_000_000)]) == []
    assert seen == [f"/{SECRET}"] * 2


def test_nobody_listens(tmp_path: Path) -> None:
    with LocalHttp() as server:
        gone = server.url
    (error,) = telling.trial(Channels(webhook=secret(tmp_path, f"{gone}/{SECRET}")))
    assert "could not be reached" in error.message
    assert SECRET not in str(error) + (error.hint or "")


@pytest.mark.parametrize(
    ("content", "kind"),
    [("http://hooks.example.org/x", InvalidValue), ("", InvalidValue), (SECRET, InvalidValue)],
)
def test_an_address_that_is_none_is_told_without_it(
    content: str, kind: type[TradewindError], tmp_path: Path
) -> None:
    (error,) = telling.trial(Channels(webhook=secret(tmp_path, content)))
    assert isinstance(error, kind)
    assert SECRET not in str(error)
    (error,) = telling.trial(Channels(webhook=f"file:{tmp_path}/none"))
    assert isinstance(error, NoAccess)


def test_mail_over_smtp(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    mail = Mail(to=("ml@example.org", "ops@example.org"), sender="tw@example.org",
                host="127.0.0.1", port=port, security=NONE)  # fmt: skip
    store = MemoryStore()
    for _ in range(2):
        assert Teller(store).tell(Channels(mail=mail), [stands(85_000_000, what="warn")]) == []
    (message,) = box.got
    assert box.to == [["ml@example.org", "ops@example.org"]]
    assert message["Subject"] == "Tradewind: nlp has spent 85% of 2026-11"
    assert message["From"] == "tw@example.org"
    assert "nearly spent; $15.00 left, then runs continue" in message.get_content()
    assert message["Message-ID"].endswith("@example.org>")


def test_a_server_that_refuses_is_told_and_nothing_is_marked(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    box.answer = f"554 no {SECRET}"
    mail = Mail(to=("ml@example.org",), sender="tw@example.org", host="127.0.0.1", port=port,
                security=NONE)  # fmt: skip
    store = MemoryStore()
    (error,) = Teller(store).tell(Channels(mail=mail), [stands(85_000_000)])
    assert "SMTPDataError 554" in error.message
    assert SECRET not in error.message
    assert store.list_after(TOLD) == []


class Unwritable(MemoryStore):
    def create(self, key: str, data: bytes) -> bool:
        raise NoAccess(f"{key} cannot be written")


def test_what_was_sent_is_not_sent_again_where_no_mark_can_be_written(tmp_path: Path) -> None:
    with LocalHttp() as server:
        server.on(f"/{SECRET}", "ok")
        channels = Channels(webhook=secret(tmp_path, f"{server.url}/{SECRET}"))
        teller = Teller(Unwritable())
        both = [stands(85_000_000, project=name) for name in ("a", "b")]
        (error,) = teller.tell(channels, both)
        assert "cannot be written" in error.message
        assert teller.tell(channels, both) == []
        assert len(server.requests) == 2


def test_a_project_s_name_may_have_lines(mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    mail = Mail(to=("ml@example.org",), sender="tw@example.org", host="127.0.0.1", port=port,
                security=NONE)  # fmt: skip
    due = [stands(85_000_000, project=name) for name in ("a\nBcc: x@example.org", "b")]
    assert Teller(MemoryStore()).tell(Channels(mail=mail), due) == []
    first, second = (message["Subject"] for message in box.got)
    assert first == "Tradewind: a Bcc: x@example.org has spent 85% of 2026-11"
    assert second == "Tradewind: b has spent 85% of 2026-11"
    assert box.to == [["ml@example.org"]] * 2


def test_whatever_goes_wrong_is_a_channel_s_trouble_without_its_secret(tmp_path: Path) -> None:
    channels = Channels(webhook=secret(tmp_path, f"https://[{SECRET}/x"))  # urlsplit: ValueError
    teller = Teller(MemoryStore())
    (error,) = teller.tell(channels, [stands(85_000_000)])
    assert isinstance(error, SourceFailed)
    assert "ValueError" in error.message
    assert SECRET not in str(error) + (error.hint or "")
    assert teller.tell(channels, [stands(85_000_000)]) == [error]  # it rests
    assert telling.trial(channels)[0].message == error.message


@pytest.mark.parametrize("security", [STARTTLS, TLS])
def test_mail_over_tls_with_a_login(
    security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: ssl.SSLContext = tls.trusted(tmp_path, monkeypatch)
    box = Mailbox()
    more: dict[str, Any] = {"authenticator": login, "auth_required": True}
    if security == STARTTLS:
        more |= {"tls_context": context, "require_starttls": True}
    else:
        more |= {"ssl_context": context, "auth_require_tls": False, "auth_required": False}
    server = AnyPort(box, hostname="127.0.0.1", port=0, **more)
    server.start()
    try:
        port = server.port

        def mail(password: str) -> Channels:
            return Channels(
                mail=Mail(to=("ml@example.org",), sender="tw@example.org", host="127.0.0.1",
                          port=port, security=security, user="tw",
                          password=secret(tmp_path, password))
            )  # fmt: skip

        assert telling.trial(mail(SECRET)) == []
        (error,) = telling.trial(mail("wrong-" + SECRET[:4]))
        assert "SMTPAuthenticationError 535" in error.message
        assert len(box.got) == 1
    finally:
        server.stop()


def test_a_password_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    mail = Mail(to=("a@b",), sender="c@d", host="smtp.example.org", port=25, security=NONE,
                user="tw", password=secret(tmp_path, SECRET))  # fmt: skip
    (error,) = telling.trial(Channels(mail=mail))
    assert "not sent without TLS" in error.message


def test_a_controller_tells_and_goes_on_when_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mailbox: tuple[Mailbox, int]
) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    box, port = mailbox
    hook = secret(tmp_path, "https://127.0.0.1:1/x")
    (tmp_path / "budgets.yaml").write_text(
        f"tell:\n  webhook: {hook}\n  mail: {{to: ml@example.org, from: tw@example.org,"
        f" server: '127.0.0.1:{port}', security: none}}\n"
        "projects:\n  nlp: {month: $1.80}\n"
    )
    store = MemoryStore()
    events = events_of("r-1", NOON_S - 2 * HOUR_S, (WAY, HOUR_S), outcome="", project="nlp")
    assert journal.append(store, "r-1", 1, writer="w", at=AT, events=events)
    loop = Loop(store, {}, tmp_path)
    assert [name for name, _ in loop.tick(60)] == [budgetfile.NAME]
    assert [message["Subject"] for message in box.got] == [
        "Tradewind: nlp has spent 200% of 2026-11"
    ]
    loop.tick(60)
    assert len(box.got) == 1


def overspent(home: Path, tell: str) -> MemoryStore:
    (home / "budgets.yaml").write_text(f"tell: {tell}\nprojects:\n  nlp: {{month: $1.80}}\n")
    store = MemoryStore()
    events = events_of("r-1", NOON_S - 2 * HOUR_S, (WAY, HOUR_S), outcome="", project="nlp")
    assert journal.append(store, "r-1", 1, writer="w", at=AT, events=events)
    return store


def test_a_slow_server_does_not_hold_up_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    now = [1000.0]
    monkeypatch.setattr(clock, "stopwatch", lambda: now[0])
    let_go = threading.Event()

    def answer(request: Request) -> str:
        assert let_go.wait(60)
        return "ok"

    with LocalHttp() as server:
        server.on(f"/{SECRET}", answer)
        hook = secret(tmp_path, f"{server.url}/{SECRET}")
        store = overspent(tmp_path, f"{{webhook: {hook}}}")
        loop = Loop(store, {}, tmp_path)
        for _ in range(3):
            assert loop.tick(0) == []
            now[0] += 61
        assert store.list_after(TOLD) == []  # passes are made while it does not answer
        let_go.set()
        assert loop.tick(60) == []
        assert len(store.list_after(TOLD)) == len(server.requests) == 1


def test_a_body_is_not_waited_for(tmp_path: Path) -> None:
    let_go = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(65_536)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nok")
            let_go.wait(5)

    server = threading.Thread(target=drip)
    server.start()
    with listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/{SECRET}"
        assert telling.trial(Channels(webhook=secret(tmp_path, address))) == []
    let_go.set()
    server.join()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"tell: {{webhook: 'https://hooks.slack.com/{SECRET}'}}", "does not say where the secret"),
        ("tell: {mail: {to: a@b}}", "from and server missing"),
        ("tell: {mail: {to: ab, from: c@d, server: x}}", "'ab' is no address"),
        ("tell: {mail: {to: a@b, from: c@d, server: 'x:0'}}", "is no server"),
        ("tell: {mail: {to: a@b, from: c@d, server: x, user: u}}", "user and password go together"),
        (
            f"tell: {{mail: {{to: a@b, from: c@d, server: x, user: u, password: {SECRET}}}}}",
            "does not say where the secret",
        ),
        ("tell: {mail: {to: a@b, from: c@d, server: x, security: ssl}}", "'ssl' is none of"),
        ("tell: {slack: x}", "there is no such field"),
    ],
)
def test_a_wrong_file_is_told_and_never_what_is_secret(text: str, complaint: str) -> None:
    with pytest.raises(BadFile) as caught:
        budgetfile.read(text, "b")
    assert complaint in caught.value.message
    assert SECRET not in caught.value.message


def test_ports_and_security_go_together() -> None:
    def read(more: str) -> Mail:
        mail = budgetfile.read(f"tell: {{mail: {{to: a@b, from: c@d, {more}}}}}", "b").tell.mail
        assert mail is not None
        return mail

    assert (read("server: x").port, read("server: x").security) == (587, STARTTLS)
    assert read("server: 'x:465'").security == TLS
    assert read("server: x, security: tls").port == 465
