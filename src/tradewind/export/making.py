"""One export: a kind's texts, each with its header, none with a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tradewind.base.errors import InvalidValue
from tradewind.export import header, registry
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, Refused, Setting
from tradewind.model import sensitive


def made(name: str, asked: Asked, settings: Mapping[str, str] | None = None) -> Exported:
    found = registry.kind(name)
    exported = found.export(asked, chosen(name, found.SETTINGS, settings or {}))
    files = {
        path: replace(file, text=header.over(path, file.text, asked))
        for path, file in sorted(exported.files.items())
    }
    for path, file in files.items():
        _refuse_secrets(path, file.text, asked)
    return replace(exported, files=files)


def chosen(name: str, settings: tuple[Setting, ...], given: Mapping[str, str]) -> Mapping[str, str]:
    """What was asked for by `--set`, and what is usual for the rest."""
    known = {each.name: each for each in settings}
    for each, value in given.items():
        if each not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InvalidValue(f"{name} has no setting {each!r}", hint=has)
        if known[each].choices and value not in known[each].choices:
            raise InvalidValue(
                f"{each}={value} is none of its choices",
                hint=f"--set {each}={'|'.join(known[each].choices)}",
            )
    usual = {each.name: each.choices[0] if each.choices else "" for each in settings}
    return {**usual, **given}


def _refuse_secrets(path: str, text: str, asked: Asked) -> None:
    """Workloads with secrets are refused when they are read; a file of the job's folder, or what
    was said to be none, is seen here."""
    job = asked.job
    for fine in (job.not_secret or ()) if job is not None else ():
        assert job is not None
        said = {**job.env, "command": job.command, "setup": job.setup or ""}.get(fine)
        text = text.replace(str(said), "") if said else text
    if what := sensitive.shape(text):
        raise Refused(
            f"{path} would hold what looks like {what}, and exports hold no secrets",
            nearest="name where it is in run.secrets (docs/jobs.md); nothing was written",
        )
