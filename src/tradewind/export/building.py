"""Images from exported Dockerfiles, by whichever of buildah, podman and docker is there.

An image is tagged by its content: a hash of the Dockerfile, of all that is sent to the build, and
of the build's arguments. What is there under that tag is not built again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed

TOOLS = ("buildah", "podman", "docker")
GBPS = 10
"""Of a machine's network, by which it is said how long an image takes at least."""
_TAG = 16


class Built(NamedTuple):
    image: str
    """With its tag."""
    tool: str
    size_bytes: int
    """Unpacked."""
    fresh: bool
    """It was not there before."""

    @property
    def fetch_s(self) -> float:
        """At least: what is fetched is packed, and what was packed has to be unpacked."""
        return self.size_bytes / (GBPS / 8 * 1e9)


def tool(named: str | None = None) -> str:
    for name in (named,) if named else TOOLS:
        if shutil.which(name):
            return name
    raise NotFound(
        f"there is no {named or 'buildah, podman or docker'} on PATH",
        hint="apt install buildah, or --tool NAME",
    )


def content(dockerfile: Path, context: Path, arguments: Mapping[str, str]) -> str:
    """Of all that a build is made from."""
    found = hashlib.sha256(_text(dockerfile).encode())
    found.update(json.dumps(dict(sorted(arguments.items()))).encode())
    for path in sent(dockerfile, context):
        mode = path.lstat().st_mode
        found.update(f"\n{path.relative_to(context)} {stat.S_IMODE(mode):o} ".encode())
        if path.is_symlink():
            found.update(f"-> {path.readlink()}".encode())
        else:
            with path.open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()[:_TAG]


def sent(dockerfile: Path, context: Path) -> Iterator[Path]:
    """Files of the context that its ignore file does not keep back, sorted."""
    from pathspec import GitIgnoreSpec

    ignores = ignored(dockerfile)
    lines = _text(ignores).splitlines() if ignores is not None else []
    # A pattern of Docker's begins at the context's root; one of git's without / is of any folder.
    spec = GitIgnoreSpec.from_lines(
        line if line.lstrip("!").startswith(("/", "**", "#")) or not line.strip() else _rooted(line)
        for line in lines
    )
    for path in sorted(context.rglob("*")):
        if (path.is_symlink() or path.is_file()) and not spec.match_file(path.relative_to(context)):
            yield path


def _rooted(line: str) -> str:
    return f"!/{line[1:]}" if line.startswith("!") else f"/{line}"


def ignored(dockerfile: Path) -> Path | None:
    path = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
    return path if path.is_file() else None


def build(
    dockerfile: Path,
    context: Path,
    name: str,
    arguments: Mapping[str, str],
    *,
    named: str | None = None,
    platform: str = "",
) -> Built:
    if not context.is_dir():
        raise NoAccess(f"{context} is no folder", hint="name the job's folder")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/:-]*", name):
        raise InvalidValue(f"{name!r} is no name of an image", hint="--name my-job")
    using = tool(named)
    image = f"{name}:{content(dockerfile, context, arguments)}"
    size = _size(using, image)
    if size is not None:
        return Built(image, using, size, fresh=False)
    words = [using, "build", "--file", str(dockerfile), "--tag", image]
    if using != "docker":
        # Health checks are no part of the other format.
        words += ["--format", "docker", "--layers"]
        ignores = ignored(dockerfile)
        words += ["--ignorefile", str(ignores)] if ignores is not None else []
    words += ["--platform", platform] if platform else []
    words += [part for key, each in arguments.items() for part in ("--build-arg", f"{key}={each}")]
    done = subprocess.run([*words, str(context)], check=False)
    if done.returncode != 0:
        raise SourceFailed(
            f"{using} could not build {dockerfile} (exit code {done.returncode})",
            hint="what it said stands above",
        )
    size = _size(using, image)
    if size is None:
        raise SourceFailed(f"{using} has built {image}, and does not know it")
    return Built(image, using, size, fresh=True)


def push(image: str, to: str, *, named: str | None = None, insecure: bool = False) -> str:
    """The reference by which it is there for good, with its digest."""
    using = tool(named)
    if using == "docker":
        _told([using, "tag", image, to], image)
        said = _told([using, "push", to], image)
        found = re.search(r"digest: (sha256:[0-9a-f]{64})", said)
        digest = found[1] if found else ""
    else:
        path = _scratch()
        words = [using, "push", "--digestfile", str(path)]
        words += ["--tls-verify=false"] if insecure else []
        try:
            _told([*words, image, f"docker://{to}"], image)
            digest = path.read_text().strip()
        finally:
            path.unlink(missing_ok=True)
    if not digest:
        raise SourceFailed(f"{using} has pushed {to}, and does not say under which digest")
    return f"{re.sub(r':[^:/]+$', '', to)}@{digest}"


def _scratch() -> Path:
    import os
    import tempfile

    handle, name = tempfile.mkstemp(prefix="tradewind-digest-")
    os.close(handle)
    return Path(name)


def _size(using: str, image: str) -> int | None:
    """None: it is not there."""
    if using == "buildah":
        done = _asked([using, "images", "--json", image])
        if done is None:
            return None
        listed = json.loads(done)
        return _bytes(str(listed[0]["size"])) if listed else None
    done = _asked([using, "image", "inspect", "--format", "{{.Size}}", image])
    return None if done is None else int(done)


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _bytes(text: str) -> int:
    """As buildah writes sizes: `1.23 GB`."""
    found = re.fullmatch(r"([\d.]+)\s*([KMGT]?B)", text.strip(), re.IGNORECASE)
    if found is None:
        raise SourceFailed(f"a size is written as {text!r}")
    return round(float(found[1]) * _UNITS[found[2].upper()])


def _asked(words: Sequence[str]) -> str | None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _told(words: Sequence[str], image: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise SourceFailed(
            f"{image} could not be pushed: {said[-1] if said else 'no reason was given'}",
            hint=f"{words[0]} login REGISTRY, if it asks who you are",
        )
    return done.stdout


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoAccess(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="tradewind export dockerfile work.yaml --out DIR writes one",
        ) from None
