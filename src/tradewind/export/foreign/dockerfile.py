"""A Dockerfile: what it installs becomes the setup, what it starts the command."""

from __future__ import annotations

import json
import re
import shlex

from tradewind.base.errors import BadFile
from tradewind.export.foreign.found import Found

_SILENT = ("FROM", "WORKDIR", "COPY", "ARG", "SHELL", "LABEL")

_HEREDOC = re.compile(r"""<<-?["']?[A-Za-z_]""")


def read(text: str) -> Found:
    found = Found()
    setup: list[str] = []
    stages: list[str] = []
    start: dict[str, str] = {}
    for word, rest in _instructions(text):
        if word == "FROM":
            if not rest:
                raise BadFile("FROM names no image", hint="correct the Dockerfile")
            stages.append(rest.split()[0])
            setup, start = [], {}
            found.env.clear()
        elif word == "RUN":
            if _HEREDOC.search(rest):
                raise BadFile(
                    f"RUN {rest}: lines up to a word are not read",
                    hint="RUN with its commands on a line, or in a script",
                )
            inner = re.sub(r"--mount=\S+\s*", "", rest).strip()
            setup.append(inner)
        elif word == "ENV":
            found.env |= _variables(rest)
        elif word in ("CMD", "ENTRYPOINT"):
            start[word] = _command(rest)
        elif word not in _SILENT:
            found.left.append(f"{word} {rest}: no such thing here")
    if not stages:
        raise BadFile("this is no Dockerfile: it has no FROM", hint="--from another KIND")
    found.env.pop("PATH", None)
    if len(stages) > 1:
        found.left.append("stages before the last: build the image, and name it in run.image")
    found.left.append(f"FROM {stages[-1]}: run.image, where machines start containers")
    found.setup = "\n".join(setup)
    found.command = " ".join(start[each] for each in ("ENTRYPOINT", "CMD") if each in start)
    return found


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    parts = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(word.upper(), rest.strip()) for word, _, rest in parts]


def _variables(text: str) -> dict[str, str]:
    try:
        parts = shlex.split(text)
    except ValueError:
        raise BadFile(f"ENV {text}: a quote does not end", hint="correct the Dockerfile") from None
    if parts and "=" not in parts[0]:
        return {parts[0]: " ".join(parts[1:])}
    return {name: value for name, _, value in (each.partition("=") for each in parts)}


def _command(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, list):
        return text
    said = [str(each) for each in value]
    # A shell is there anyway.
    return (
        said[2]
        if len(said) > 2 and said[:2] in (["/bin/sh", "-c"], ["sh", "-c"])
        else shlex.join(said)
    )
