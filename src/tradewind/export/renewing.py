"""The table of images renewed: versions from PyPI, which builds of PyTorch there are from its index
of wheels, digests of bases from their registries.

What no index tells stays as it is: the kernels in a build, and the least driver of a CUDA version.
So a build that the table does not have is told of, and not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from tradewind.base.errors import SourceFailed
from tradewind.export.images import Build, Table

if TYPE_CHECKING:
    import urllib3

PYPI = "https://pypi.org"
_MOST = 64 * 1024 * 1024
_TIMEOUT_S = 30
_DOCKER = "docker.io"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json,"
    " application/vnd.docker.distribution.manifest.list.v2+json"
)
_BUILD = re.compile(r"(?:cu|rocm)\d[\d.]*")


class Renewal:
    def __init__(self, known: Table, *, pypi: str = PYPI) -> None:
        import urllib3

        self._known, self._pypi = known, pypi
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT_S, retries=urllib3.Retry(3, redirect=5))
        self.notes: list[str] = []

    def table(self, as_of: str) -> Table:
        """SourceFailed: nothing is half renewed."""
        engines = {name: self._version(name) for name in self._known.engines}
        torch = self._torch()
        builds = {
            name: replace(build, base=self._base(build))
            for name, build in self._known.builds.items()
        }
        return replace(self._known, as_of=as_of, engines=engines, torch=torch, builds=builds)

    def _version(self, package: str) -> str:
        answer = self._asked(f"{self._pypi}/pypi/{package}/json")
        try:
            version = answer.json()["info"]["version"]
        except (ValueError, LookupError, TypeError):
            version = None
        if not isinstance(version, str) or not re.fullmatch(r"\d+(\.\d+)+(\.post\d+)?", version):
            raise SourceFailed(f"{self._pypi} tells no version of {package}")
        return version

    def _torch(self) -> str:
        """The newest that every build of the table has wheels of."""
        newest = self._version("torch")
        indexed = {name: build for name, build in self._known.builds.items() if build.index}
        lacking = [name for name, build in indexed.items() if not self._has(build, newest)]
        self._look_for_new(indexed)
        if lacking:
            self.notes.append(
                f"PyTorch {newest} has no wheels for {', '.join(lacking)}:"
                f" {self._known.torch} stays"
            )
            return self._known.torch
        if newest != self._known.torch:
            self.notes.append(
                f"kernels of PyTorch {newest} may be others than those of {self._known.torch}: its"
                " RELEASE.md has them, `PyTorch CUDA Support Matrix`"
            )
        return newest

    def _has(self, build: Build, version: str) -> bool:
        page = self._asked(f"{build.index}/torch/").data.decode("utf-8", "replace")
        return re.search(rf"torch-{re.escape(version)}(%2B|\+|-)", page) is not None

    def _look_for_new(self, indexed: Mapping[str, Build]) -> None:
        roots = {build.index.rpartition("/")[0] for build in indexed.values()}
        for root in sorted(roots):
            page = self._asked(f"{root}/").data.decode("utf-8", "replace")
            there = set(re.findall(rf'href="(?:[^"]*/)?({_BUILD.pattern})/?"', page))
            ours = [_number(name) for name in indexed if _BUILD.fullmatch(name)]
            newer = [
                name
                for name in sorted(there - set(indexed), key=_number)
                if _number(name)
                > max((one for one in ours if one[0] == _number(name)[0]), default=("", ()))
            ]
            if newer:
                self.notes.append(
                    f"there are builds that the table does not know: {', '.join(newer)}"
                )

    def _base(self, build: Build) -> str:
        name, _, _ = build.base.partition("@")
        digest = self._digest(name)
        if digest is None:
            self.notes.append(f"{name}: its registry tells no digest, so the tag stays alone")
            return name
        return f"{name}@{digest}"

    def _digest(self, name: str) -> str | None:
        host, _, path = name.partition("/")
        path, _, tag = path.rpartition(":")
        plain = host.startswith(("127.0.0.1", "localhost"))
        host = "registry-1.docker.io" if host == _DOCKER else host
        url = f"{'http' if plain else 'https'}://{host}/v2/{path}/manifests/{tag}"
        headers = {"Accept": _MANIFESTS}
        answer = self._asked(url, headers, fine=(200, 401))
        if answer.status == 401:
            token = self._token(answer.headers.get("WWW-Authenticate", ""), url)
            answer = self._asked(url, {**headers, "Authorization": f"Bearer {token}"})
        found = answer.headers.get("Docker-Content-Digest", "")
        return found if re.fullmatch(r"sha256:[0-9a-f]{64}", found) else None

    def _token(self, challenge: str, url: str) -> str:
        """As registries hand one out to anybody: https://distribution.github.io/distribution/"""
        said = dict(_pairs(challenge))
        realm = said.pop("realm", "")
        if urlsplit(realm).scheme not in ("https", urlsplit(url).scheme):
            raise SourceFailed(f"{url} does not say who gives a token")
        import json
        from urllib.parse import urlencode

        answer = self._asked(f"{realm}?{urlencode(said)}")
        try:
            told = json.loads(answer.data)
            token = told.get("token") or told["access_token"]
        except (ValueError, LookupError, AttributeError):
            token = None
        if not isinstance(token, str):
            raise SourceFailed(f"{realm} gives no token")
        return token

    def _asked(
        self, url: str, headers: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (200,),
    ) -> urllib3.BaseHTTPResponse:  # fmt: skip
        import urllib3

        try:
            answer = self._pool.request("GET", url, headers=dict(headers or {}))
        except urllib3.exceptions.HTTPError as error:
            raise SourceFailed(
                f"{url} did not answer: {error}", hint="nothing was renewed; try again"
            ) from None
        if answer.status not in fine or len(answer.data) > _MOST:
            raise SourceFailed(
                f"{url} answered {answer.status}", hint="nothing was renewed; try again later"
            )
        return answer


def changes(before: Table, after: Table) -> list[str]:
    found = [f"torch {before.torch} → {after.torch}"] if before.torch != after.torch else []
    found += [
        f"{name} {before.engines[name]} → {version}"
        for name, version in after.engines.items()
        if before.engines[name] != version
    ]
    found += [
        f"base of {name}: {_end(before.builds[name].base)} → {_end(build.base)}"
        for name, build in after.builds.items()
        if before.builds[name].base != build.base
    ]
    return found


def _end(base: str) -> str:
    return base.partition("@")[2][:19] or "no digest"


def _number(name: str) -> tuple[str, tuple[int, ...]]:
    """`cu130` and `cu126` are one after the other, and so are `rocm7.2` and `rocm6.4`."""
    kind = name.rstrip("0123456789.")
    return kind, tuple(int(each) for each in name[len(kind) :].split(".") if each)


def _pairs(challenge: str) -> Iterator[tuple[str, Any]]:
    for match in re.finditer(r'(\w+)="([^"]*)"', challenge):
        yield match[1], match[2]
