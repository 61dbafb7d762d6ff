"""What is installed, and for what one would need the rest.

A part that nobody has asked for is not broken: it is `missing`, and what it is for is said, with
the command that brings it. Nothing is imported to find out, since PyTorch alone takes seconds.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import NamedTuple

from tradewind.model import buckets
from tradewind.model.finding import BROKEN, MISSING, OK, WARNING, Finding
from tradewind.providers import registry


class Part(NamedTuple):
    extra: str
    packages: tuple[str, ...]
    """As pip calls them; any of them will do."""
    least: str
    needed_for: str


_PARTS = (
    Part(
        "torch",
        ("torch",),
        "2.11",
        "tradewind.torch, `tradewind profile`, `tradewind demo`, benches of training",
    ),
    Part("cloud", ("obstore",), "0.12", "stores in buckets (s3://, gs://, az://)"),
    Part("plot", ("matplotlib",), "3.8", "plots and charts (--plot)"),
    Part("calibrate", ("scipy",), "1.11", "`tradewind calibrate`"),
    Part("huggingface", ("transformers",), "5", "Hugging Face's Trainer (tw.hf)"),
    Part(
        "lightning",
        ("pytorch-lightning", "lightning"),
        "2.5",
        "PyTorch Lightning (tw.LightningCallback)",
    ),
    Part("accelerate", ("accelerate",), "1.10", "Hugging Face's Accelerate (tw.accelerate)"),
    Part("deepspeed", ("deepspeed",), "0.19", 'tw.prepare(…, engine="deepspeed")'),
)
"""The extras of pyproject.toml, besides those of clouds."""

BASE = {
    "numpy": "numpy",
    "click": "click",
    "rich": "rich",
    "urllib3": "urllib3",
    "yaml": "PyYAML",
    "msgspec": "msgspec",
    "pynvml": "nvidia-ml-py",
    "pathspec": "pathspec",
}
"""What must be there: module → package."""

Version = Callable[[str], str | None]


def parts() -> tuple[Part, ...]:
    """Of all extras; those of clouds beside that of buckets."""
    found = [registry.rentable(name).library for name in registry.RENTED]
    clouds = [Part(one.extra, (one.package,), one.least, one.needed_for) for one in found if one]
    return (*_PARTS[:2], *clouds, *_PARTS[2:])


def installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def part_checks(version: Version = installed) -> Iterator[Finding]:
    """What is as it should be in one line, the rest in one each."""
    versions = {"Python": platform.python_version()}
    others = []
    for part in parts():
        name = next((package for package in part.packages if version(package)), None)
        told = version(name) if name else None
        if name and told and numbers(told) >= numbers(part.least):
            versions[name] = told
        else:
            others.append(_old(part, name, told) if name and told else _missing(part))
    yield Finding(
        about="parts",
        level=OK,
        what=", ".join(f"{name} {told}" for name, told in versions.items()),
        measured={"versions": versions, "prefix": sys.prefix},
    )
    lacking = [package for module, package in BASE.items() if find_spec(module) is None]
    if lacking:
        yield Finding(
            about="parts",
            level=BROKEN,
            what=f"{', '.join(lacking)} not installed",
            why="Tradewind cannot do without: it was installed without what it needs",
            todo="pip install tradewind",
        )
    yield from others
    if version("torch"):
        yield from torchrun_checks()


def _missing(part: Part) -> Finding:
    return Finding(
        about="parts",
        level=MISSING,
        what=f"{part.packages[0]} is not installed",
        why=part.needed_for,
        todo=f"pip install 'tradewind[{part.extra}]'",
        measured={"part": part.packages[0], "extra": part.extra, "version": None},
    )


def _old(part: Part, name: str, told: str) -> Finding:
    return Finding(
        about="parts",
        level=WARNING,
        what=f"{name} {told} is older than {part.least}",
        why=f"so old a one was not tried; it serves {part.needed_for}",
        todo=f"pip install --upgrade 'tradewind[{part.extra}]'",
        measured={"part": name, "extra": part.extra, "version": told},
    )


def numbers(version: str) -> tuple[int, ...]:
    """2.13.0+cpu → (2, 13, 0)"""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def torchrun_checks(bin_folder: Path = Path(sys.prefix) / "bin") -> Iterator[Finding]:
    """Jobs find what is beside their Python first (docs/jobs.md)."""
    if which("torchrun", path=str(bin_folder)) or which("torchrun"):
        return
    yield Finding(
        about="parts",
        level=WARNING,
        what=f"torchrun is neither in {bin_folder} nor on PATH",
        why="jobs whose command begins with it do not start on this computer",
        todo="pip install --force-reinstall --no-deps torch; or write python -m"
        " torch.distributed.run instead",
    )


def price_checks(sources: Mapping[str, Sequence[str]], env: Mapping[str, str]) -> Iterator[Finding]:
    """`sources`: the variables that each provider's prices need, most none."""
    lacking = {
        name: [variable for variable in variables if not env.get(variable)]
        for name, variables in sources.items()
    }
    without = {name: variables for name, variables in lacking.items() if variables}
    asked = [name for name in sources if name not in without]
    yield Finding(
        about="prices",
        level=OK,
        what=f"{len(asked)} of {len(sources)} sources can be asked",
        measured={"sources": asked},
    )
    if without:
        keys = (f"{name} ({' and '.join(each)})" for name, each in without.items())
        first, variables = next(iter(without.items()))
        yield Finding(
            about="prices",
            level=MISSING,
            what=f"{len(without)} keys are not set" if len(without) > 1 else "a key is not set",
            why=f"newer prices of {', '.join(keys)}",
            todo=f"export {variables[0]}=…, then tradewind catalog refresh -p {first}",
            measured={"without": without},
        )


def bucket_checks(store_url: str, env: Mapping[str, str], user: Path) -> Iterator[Finding]:
    """Where runs are kept in a folder; for a bucket, its own checks know better."""
    if not store_url.startswith("file:"):
        return
    found = [
        scheme
        for scheme, bucket in buckets.STORES.items()
        if any(env.get(name) for name in bucket.account) or (user / bucket.kept).exists()
    ]
    if found:
        what = f"for buckets of {', '.join(found)} there are some, which were not tried"
        yield Finding(about="credentials", level=OK, what=what, measured={"found": found})
        return
    yield Finding(
        about="credentials",
        level=MISSING,
        what="no cloud's are found",
        why="a store in a bucket (s3://, gs://, az://)",
        todo="tradewind explain credentials",
        measured={"found": []},
    )
