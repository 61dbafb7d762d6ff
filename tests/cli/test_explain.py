"""`tradewind explain`, and that what it says is still true of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import tradewind
from tests.cli.conftest import Cli
from tests.cli.test_help_texts import parsed
from tests.test_docs import ROOT
from tradewind.cli.help import topics
from tradewind.cli.help.explain import EXIT_CODES
from tradewind.cli.help.topics import terms
from tradewind.cli.runs import runview
from tradewind.model.event import Ended, LegOver, Resumed

SOURCE = "".join(
    path.read_text()
    for path in sorted(Path(tradewind.__file__).parent.rglob("*.py"))
    if path.parent.name != "topics" and path.name != "explain.py"
)
# As a reader sees them: texts that go on in the next line are one.
SEAMLESS = re.sub(r'"\s*\n\s*f?"', "", SOURCE).lower()
TOPICS = topics.every()
EACH = pytest.mark.parametrize("topic", TOPICS, ids=topics.names())


@EACH
def test_its_words_are_still_said(topic: topics.Topic) -> None:
    for words in topic.says:
        theirs = words == "cuda out of memory"  # PyTorch says it
        assert theirs or words in SEAMLESS, f"nothing says {words!r} any more"


@EACH
def test_its_commands_parse(topic: topics.Topic) -> None:
    assert all(len(line) <= 60 for line in topic.text.splitlines() if line.startswith("    "))
    lines = re.findall(r"^    (.*)$", topic.text.replace("\\\n", ""), re.MULTILINE)
    assert lines
    for line in lines:
        command = line.partition("* * * * * ")[2] or line
        words = shlex.split(command, comments=True)
        if words[0] == "tradewind":
            parsed(words[1:])
        else:
            assert words[0] in ("pip", "export", "gcloud", "torchrun", "head")


@EACH
def test_it_is_half_a_page(topic: topics.Topic, cli: Cli) -> None:
    ran = cli("explain", topic.name)
    assert ran.code == 0
    assert 12 <= len(ran.out.splitlines()) <= 45
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert f"| `{topic.name}` |" in (ROOT / "docs" / "commands" / "explain.md").read_text()


def test_every_mention_leads_to_a_topic() -> None:
    mentioned = re.findall(r"tradewind explain ([a-z-]+)", re.sub(r'"\s*\n\s*f?"', "", SOURCE))
    assert {"ranks", "checkpoints"} <= set(mentioned) <= set(topics.names())


def test_by_an_error_s_words(cli: Cli) -> None:
    for said, title in (
        ("error: no plan keeps every limit", "No plan keeps every limit"),
        ("leg 3 ended (job failed): out of GPU memory", "Out of memory (OOM)"),
        ("No-Plan", "No plan keeps every limit"),
        ("late", "A run that will be late, or was"),
        ("budget", "The budget is spent, or nearly"),
    ):
        assert cli("explain", *said.split()).out.startswith(title), said
    ran = cli("explain", "xyzzy")
    assert (ran.code, ran.out) == (3, "")
    assert "lists the topics" in ran.err


USUAL = """
preemption preempted eviction quota OOM autostop spot checkpoint node pod gang retry resume cluster
accelerator GPU cost price budget region zone YAML secret logs queue job service port docker image
ssh mount volume storage bucket credentials egress reservation on-demand DDP FSDP ZeRO MFU failover
elastic rendezvous torchrun NCCL AccessDenied ExpiredToken VcpuLimitExceeded status cancel cleanup
dashboard glossary Kubernetes Slurm SkyPilot notebook workdir deadline leg store journal controller
InsufficientInstanceCapacity idle bundle sweep heartbeat
"""
"""What users of other tools type first."""


@pytest.mark.parametrize("word", USUAL.split())
def test_usual_terms_are_found(word: str, cli: Cli) -> None:
    ran = cli("explain", word)
    assert ran.code == 0, ran.err
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert word.lower().rstrip("s") in ran.out.lower() or terms.find(word)


def test_a_term_is_found_however_it_is_spelled(cli: Cli) -> None:
    once = cli("explain", "gang scheduling").out
    assert "all together or not at all" in " ".join(once.split())
    assert cli("explain", "Gang-Scheduling").out == once
    assert cli("explain", "on", "demand").out == cli("explain", "on-demand").out
    assert cli("explain", "quotas").out == cli("explain", "quota").out
    assert cli("explain", "137").out.startswith("Out of memory (OOM)")


@pytest.mark.parametrize("term", terms.every(), ids=lambda term: term.words[0])
def test_a_term_leads_on(term: terms.Term) -> None:
    assert term.text or term.topic
    assert bool(term.text) == bool(term.commands)
    assert term.topic is None or term.topic in topics.names()
    assert term.page is None or (ROOT / term.page).exists()
    for command in term.commands:
        parsed(shlex.split(command)[1:])
    for word in term.words:
        assert terms.find(word) == term, f"{word!r} stands in two places"


def test_by_an_exit_code(cli: Cli) -> None:
    told = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "exit-codes.md").read_text(), re.MULTILINE)
    assert sorted(map(int, told)) == sorted(EXIT_CODES)
    for code, words in EXIT_CODES.items():
        text = " ".join(cli("explain", str(code)).out.split())
        assert text.startswith(f"Exit code {code}: {words}")
    assert "no-plan" in cli("explain", "3").out
    assert cli("explain", "99").code == 3


def test_an_error_says_that_there_is_more(cli: Cli, tmp_path: Path) -> None:
    work = ROOT / "examples" / "lora-8b-overnight" / "work.yaml"
    ran = cli("plan", str(work), "--budget", "$0.01")
    assert ran.code == 3
    assert ran.err.endswith("more: tradewind explain no-plan\n")
    assert "more: " not in cli("offers", "h1000").err


def ended(outcome: str, reason: str) -> Ended:
    return Ended(outcome=outcome, reason=reason)


def test_a_run_that_ends_badly_says_so_too() -> None:
    over = LegOver(leg=1, cause="job_failed", reason="out of GPU memory", saved=0.0)
    why = "the job has failed 3 times without getting further"
    failed = ended("failed", why)
    assert runview.more([over, failed]) == "tradewind explain out-of-memory"
    tail = "torch.OutOfMemoryError: CUDA out of memory."
    last = LegOver(leg=1, cause="job_failed", reason="the job has failed", saved=0.0, tail=tail)
    assert runview.more([last, failed]) == "tradewind explain out-of-memory"
    assert runview.more([failed]) == "tradewind explain failed"
    assert runview.more([ended("too_late", "x")]) == "tradewind explain late"
    assert runview.more([failed, Resumed(reason="x")]) is None
    assert runview.more([over, ended("succeeded", "x")]) is None
    assert runview.more([over]) is None
