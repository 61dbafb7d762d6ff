"""Secrets of a job: named in the workload, never written into it."""

from __future__ import annotations

import json

import pytest

from tests.planning.test_document import PLAN
from tests.workload.making import NOW, WORK, read
from tradewind.base.errors import BadWorkload, InvalidValue
from tradewind.model import Job, secrets, sensitive
from tradewind.model.secrets import Reference
from tradewind.planning import document
from tradewind.workload.schema import schema

LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
# Put together here, so that no scanner of repositories takes this file for a leak.
TOKENS = {
    "an AWS access key": "AK" + "IAIOSFODNN7EXAMPLE",
    "a Hugging Face token": "hf" + f"_{LETTERS[:34]}",
    "a GitHub token": "gh" + f"p_{LETTERS}",
    "a GitLab token": "glp" + f"at-{LETTERS[:20]}",
    "an API key": "sk" + f"-proj-{LETTERS}",
    "a Slack token": "xo" + f"xb-123456789012-{LETTERS[:20]}",
    "a Google API key": "AI" + f"za{LETTERS[:35]}",
    "a package index token": "py" + f"pi-{LETTERS}{LETTERS}",
    "a private key": "-----BEGIN OPENSSH " + "PRIVATE KEY----- x",
    "a JSON Web Token": f"ey{'J'}{LETTERS[:20]}.ey{'J'}{LETTERS[:20]}.{LETTERS}",
    "a URL with a password": "postgres://me:" + "hunter2@db.internal/runs",
}


def in_run(more: str) -> str:
    return f"{WORK}run:\n  command: python train.py\n{more}"


# -- where they are --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("file:~/.hf_token", Reference("file", "~/.hf_token")),
        ("file:/run/secrets/a b", Reference("file", "/run/secrets/a b")),
        ("aws-ssm:/tradewind/hf", Reference("aws-ssm", "/tradewind/hf")),
        (
            "aws-ssm:arn:aws:ssm:eu-west-1:123456789012:parameter/x/y",
            Reference("aws-ssm", "arn:aws:ssm:eu-west-1:123456789012:parameter/x/y"),
        ),
        ("aws-secretsmanager:ml/wandb", Reference("aws-secretsmanager", "ml/wandb")),
        (
            "aws-secretsmanager:arn:aws:secretsmanager:us-east-1:123456789012:secret:a/b-AbCde#k",
            Reference(
                "aws-secretsmanager",
                "arn:aws:secretsmanager:us-east-1:123456789012:secret:a/b-AbCde",
                "k",
            ),
        ),
    ],
)
def test_where_a_secret_is(text: str, found: Reference) -> None:
    assert secrets.parse(text) == found
    made = read(in_run(f"  secrets:\n    X: {json.dumps(text)}\n"))
    assert made.run is not None
    assert made.run.secrets == {"X": text}


@pytest.mark.parametrize(
    "text", ["hunter2", "vault:x/y", "file:relative", "aws-ssm:a b", "aws-secretsmanager:a#"]
)
def test_what_is_not_a_place_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        secrets.parse(text)
    assert text not in str(caught.value)
    assert caught.value.hint
    with pytest.raises(BadWorkload, match=r"run\.secrets: X: ") as refused:
        read(in_run(f"  secrets:\n    X: {json.dumps(text)}\n"))
    assert text not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("  secrets: {TRADEWIND_RUN: file:/x}\n", "TRADEWIND_RUN is ours"),
        ("  secrets: {1A: file:/x}\n", "'1A' is not the name of a variable"),
        ("  secrets: {A: file:/x}\n  env: {A: b}\n", "A is in env too"),
    ],
)
def test_names_of_secrets(more: str, words: str) -> None:
    with pytest.raises(BadWorkload, match=words):
        read(in_run(more))


def test_every_scheme_is_in_the_schema() -> None:
    found = schema()["properties"]["run"]["properties"]["secrets"]
    for scheme in secrets.SCHEMES:
        assert f"{scheme}:" in found["additionalProperties"]["pattern"]


# -- what looks like one ---------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "token"), TOKENS.items())
def test_a_token_is_refused_wherever_it_stands_and_not_repeated(what: str, token: str) -> None:
    for field in (
        f"  env:\n    HARMLESS: {json.dumps(token)}\n",
        f"  setup: {json.dumps(f'login --with {token} now')}\n",
    ):
        with pytest.raises(BadWorkload, match=f"looks like {what}.*run.secrets") as caught:
            read(in_run(field))
        assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"),
        ("SERVICE_TOKEN", "6f1c1d0e-8a54-4b0e-9d3a-1f2e3d4c5b6a"),
        ("CLIENT_SECRET", "kD8sQ2mZ5xW9vR4tY7uB1nC6"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("DB_PASSWORD", "correct horse"),
        ("PGPASSWORD", "x1"),
    ],
)
def test_what_only_its_name_gives_away(name: str, value: str) -> None:
    assert sensitive.variable(name, value)
    assert not sensitive.variable("CHECKSUM", value)
    with pytest.raises(BadWorkload, match=f"{name} looks like"):
        read(in_run(f"  env: {{{name}: {json.dumps(value)}}}\n"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_DEBUG", "INFO"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "8192"),
        ("PAD_TOKEN", "<|endoftext|>"),
        ("SORT_KEY", "customer_id_2024_europe_west"),
        ("MODEL", "meta-llama/Llama-3.1-8B-Instruct"),
        ("KEY_FILE", "/run/secrets/kD8sQ2mZ5xW9vR4tY7uB1nC6"),
        ("HF_TOKEN_PATH", "~/.cache/huggingface/token"),
        ("GIT_COMMIT", "0123456789abcdef0123456789abcdef01234567"),
        ("DATA", "https://host:8080/path@v3"),
        ("INDEX", "https://$USER:$TOKEN@pypi.internal/simple"),
        ("HF_DATASETS_CACHE", "/data/hf_datasets_cache_for_everyone_who_trains"),
        ("TASK", "sk-learn-baseline"),
        ("DIGEST", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("XLA_FLAGS", "--xla_gpu_enable_latency_hiding_scheduler=true"),
    ],
)
def test_what_is_not_a_secret_is_let_through(name: str, value: str) -> None:
    assert sensitive.variable(name, value) == ""
    assert read(in_run(f"  env: {{{name}: {json.dumps(value)}}}\n"))


def test_a_false_alarm_can_be_called_one() -> None:
    token = TOKENS["an AWS access key"]
    env = f"  env: {{A: {token}}}\n"
    assert read(in_run(f"{env}  not_secret: [A]\n"))
    assert read(in_run(f"  setup: echo {token}\n  not_secret: setup\n"))
    with pytest.raises(BadWorkload, match="A looks like"):
        read(in_run(f"{env}  not_secret: [B]\n"))
    assert Job(command="x", env={"A": token}, not_secret=("A",))
    with pytest.raises(InvalidValue, match="A looks like") as caught:
        Job(command="x", env={"A": token})
    assert token not in str(caught.value)


# -- what is shown ---------------------------------------------------------------------------------


def test_what_is_shown_has_names_and_no_secrets() -> None:
    token = TOKENS["a Hugging Face token"]
    job = {
        "command": f"HF={token} python train.py",
        "env": {"A_TOKEN": "short", "B": token, "NCCL_DEBUG": "INFO"},
        "secrets": {"C": "aws-ssm:/x"},
        "nodes": 3,
    }
    assert sensitive.redacted_job(job) == {
        "command": "HF=••• python train.py",
        "env": {"A_TOKEN": "•••", "B": "•••", "NCCL_DEBUG": "INFO"},
        "secrets": {"C": "aws-ssm:/x"},
        "nodes": 3,
    }


def test_a_saved_plan_keeps_what_the_job_needs() -> None:
    work = read(
        in_run("  env: {A_TOKEN: short}\n  secrets: {B: file:/x}\n  not_secret: [A_TOKEN]\n")
    )
    saved = document.read(document.save(PLAN, work, made_at=NOW), "plan.json")
    assert saved.workload == work
