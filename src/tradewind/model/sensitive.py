"""What looks like a secret, by its shape or by the name of its variable.

Shapes are those that their issuers document: a fixed beginning and a length, so that ordinary
values are not mistaken for them. What has no shape (a password, forty hexadecimal digits) is judged
only under a name that says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "•••"

_SHAPES = {
    "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "an API key": r"\bsk-[A-Za-z0-9_-]{32,}|\b[rs]k_live_[A-Za-z0-9]{20,}",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}",
    "a package index token": r"\bpypi-[A-Za-z0-9_-]{50,}|\bnpm_[A-Za-z0-9]{36}\b",
    "a private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a URL with a password": r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@$]+@",
}
# Texts, which `re` compiles where they are first needed: most commands read no workload.
_PASSWORD = r"(?i)(?:^|_)(?:[A-Z]*PASSWORD|PASSWD|PASSPHRASE)$"
_NAMED = (
    r"(?i)(?:^|_)(?:[A-Z]*KEY|[A-Z]*TOKEN|SECRETS?|CREDENTIALS?|[A-Z]*PASSWORD|PASSWD|PASSPHRASE)"
    r"(?:_|$)"
)
_HEX = r"[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RUN = r"[A-Za-z0-9+/=]{20,}"


def shape(text: str) -> str:
    """What of a known shape is in the text, in words; "": nothing."""
    for what, pattern in _SHAPES.items():
        if re.search(pattern, text):
            return what
    return ""


def variable(name: str, value: str) -> str:
    """The same, of a variable's value."""
    found = shape(value)
    if found or not is_named(name) or value.startswith(("/", "~", ".", "$")) or "://" in value:
        return found
    if re.search(_PASSWORD, name) and value:
        return "a password"
    return "a key" if _is_random(value) else ""


def is_named(name: str) -> bool:
    """Whether a variable of this name should hold a secret."""
    return bool(re.search(_NAMED, name))


def _is_random(value: str) -> bool:
    """Words and numbers that people write (`customer_id_2024`, `<pad>`) are not."""
    if re.fullmatch(_HEX, value):
        return True
    return any(
        re.search(r"[a-z]", run) and re.search(r"[A-Z]", run) and re.search(r"\d", run)
        for run in re.findall(_RUN, value)
    )


def redacted(text: str) -> str:
    return re.sub("|".join(_SHAPES.values()), HIDDEN, text)


def redacted_all(value: Any) -> Any:
    """The same of all texts in a document."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: redacted_all(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_all(each) for each in value]
    return value


def redacted_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Names say less of tags than of variables: `key=a` is no secret."""
    return {name: HIDDEN if variable(name, each) else each for name, each in tags.items()}


def redacted_env(env: Mapping[str, Any]) -> dict[str, Any]:
    """Names as they are; values where neither they nor their names look like a secret."""
    return {
        name: HIDDEN if is_named(name) or variable(name, str(value)) else value
        for name, value in env.items()
    }


def redacted_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """What a run is told to carry out, for people: older journals may hold secrets."""
    env = job.get("env")
    texts = {name: redacted_all(each) for name, each in job.items() if name != "env"}
    return {**job, **texts} | ({"env": redacted_env(env)} if isinstance(env, Mapping) else {})
