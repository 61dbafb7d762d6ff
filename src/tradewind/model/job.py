"""What runs on the machines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.model import checks, failures, globs, sensitive
from tradewind.model.checks import Fault
from tradewind.model.outputs import covers_code
from tradewind.model.secrets import parse as parse_reference

REPORT, STOP = "report", "stop"
ON_IDLE = (REPORT, STOP)
RETRIES = 2
"""Unless the job says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What runs on the machines: `setup` once on each, then `command`."""

    command: str
    setup: str | None = None
    setup_s: int | None = None
    """How long setting up takes, from a machine that has booted to the first step."""
    max_duration_s: int | None = None
    """How long its machines may be up, one leg after another."""
    idle_s: int = 1800
    """A job that makes no step and uses nothing for so long is idle."""
    on_idle: str | None = None
    """None: it is reported; where the machines are named and nobody knows how long the work takes,
    it is stopped."""
    retries: int | None = None
    """How often a job that fails by itself is started again without having got further."""
    retry_on: tuple[str, ...] | None = None
    """Of its failures, those that are worth it: exit codes and signals. None: all but those that
    would be the same again."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the job, which everybody may read who may read the store."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variables whose values are elsewhere, each with where (model/secrets.py)."""
    not_secret: tuple[str, ...] | None = None
    """Of `env`, `command` and `setup`, what looks like a secret and is none."""
    outputs: tuple[str, ...] | None = None
    """Files that the job writes into its folder and that are brought into the run's store."""
    image: str | None = None
    """The container image that it runs in, where machines are containers."""
    include: tuple[str, ...] | None = None
    """Files of its folder that are sent though an ignore file names them (model/globs.py)."""

    def __post_init__(self) -> None:
        checks.raise_any("run", self.faults(checks.fields_of(self)))

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        if values.get("command") is None and "command" not in wrong:
            yield Fault("command", "it is missing: what is to be run?", "command: python train.py")
        yield from checks.text(values, "command", "setup", most=100_000)
        yield from _image(values)
        yield from checks.whole(values, "setup_s", field="setup_time")
        yield from checks.whole(values, "max_duration_s", field="max_duration")
        yield from checks.whole(values, "idle_s", field="idle")
        yield from checks.choice(values, "on_idle", ON_IDLE)
        yield from _retries(values)
        yield from checks.listed(values, "not_secret", "include", "outputs")
        yield from _patterns(values, "include")
        yield from _patterns(values, "outputs")
        yield from _code(values)
        env, secrets = values.get("env") or {}, values.get("secrets") or {}
        for table, names in (("env", env), ("secrets", secrets)):
            for name in names:
                if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                    yield Fault(table, f"{name!r} is not the name of a variable")
                elif name.startswith("TRADEWIND_"):
                    yield Fault(table, f"{name} is ours: names that begin so are reserved")
        for name, reference in secrets.items():
            if name in env:
                yield Fault("secrets", f"{name} is in env too")
            try:
                parse_reference(reference)
            except InvalidValue as error:
                yield Fault("secrets", f"{name}: {error.message}", error.hint or "")
        yield from _exposed(values)


def _retries(values: Mapping[str, Any]) -> Iterator[Fault]:
    retries = values.get("retries")
    if retries is not None and not (isinstance(retries, int) and 0 <= retries < 1000):
        yield Fault("retries", f"{checks.shown(retries)} is not a number of retries", "0, or 2")
    yield from checks.listed(values, "retry_on")
    for each in values.get("retry_on") or ():
        if isinstance(each, str) and failures.code_of(each) is None:
            wrong = f"{checks.shown(each)} is neither an exit code nor a signal"
            yield Fault("retry_on", wrong, "[75, SIGSEGV]")


def _image(values: Mapping[str, Any]) -> Iterator[Fault]:
    image = values.get("image")
    if image is not None and not (isinstance(image, str) and is_image(image)):
        wrong = f"{checks.shown(image)} is not the name of a container image"
        yield Fault("image", wrong, "registry.example.com/team/image:tag")


def is_image(text: str) -> bool:
    """A reference as registries take it: [host[:port]/]path[:tag][@digest]."""
    return len(text) <= 512 and _IMAGE.fullmatch(text) is not None


_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{{1,5}})?/)?{_PART}(?:/{_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def _patterns(values: Mapping[str, Any], name: str) -> Iterator[Fault]:
    given = values.get(name)
    if not isinstance(given, tuple):
        return
    if len(given) > globs.MOST:
        yield Fault(name, f"it has {len(given):,} patterns, and at most {globs.MOST} are taken")
    for pattern in given:
        wrong = globs.problem(pattern) if isinstance(pattern, str) and pattern else ""
        if wrong:
            yield Fault(name, f"{checks.shown(pattern)}: {wrong}", "data/*.bin")


def _code(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Outputs are put back into the folder on the next machine, where the job imports from."""
    for pattern in values.get("outputs") or ():
        if isinstance(pattern, str) and covers_code(pattern):
            wrong = f"{checks.shown(pattern)} names code too, which a job imports from its folder"
            yield Fault("outputs", f"{wrong}: name folders or endings of data", "out, '*.csv'")


def _exposed(values: Mapping[str, Any]) -> Iterator[Fault]:
    """What looks like a secret, where all who may read the store would read it. The message names
    it, and does not repeat it."""
    fine = values.get("not_secret") or ()
    for name, value in (values.get("env") or {}).items():
        found = sensitive.variable(name, str(value))
        if found and name not in fine:
            yield Fault("env", f"{name} looks like {found}", _SECRETS_HINT.format(name))
    for name in ("command", "setup"):
        found = sensitive.shape(str(values.get(name) or ""))
        if found and name not in fine:
            yield Fault(name, f"it holds what looks like {found}", _SECRETS_HINT.format(name))


_SECRETS_HINT = (
    "all who may read the store could read it; name where it is in run.secrets, or, if it is not a"
    " secret, not_secret: [{}]"
)
