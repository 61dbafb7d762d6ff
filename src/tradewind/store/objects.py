"""Stores in buckets: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

Spoken to through `obstore`, whose requests to create are sent once each: its own retries would
take the echo of our own success for somebody else's. So `create` knows for every attempt whether

- it was done, or
- the key exists. S3 also says so (409 instead of 412) while another's attempt is under way, and
  that one may yet fail; so only what can be read exists, and else it is tried again; or
- nobody knows. If a later attempt then says that the key exists, its content tells whose it is.

A bucket in another region than was thought is found at the first request (handles.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tradewind import clock
from tradewind.errors import InvalidValue, NoAccess, NotFound, SourceFailed, TradewindError
from tradewind.store import regions
from tradewind.store.base import check_key, check_prefix, no_such
from tradewind.store.handles import SCHEMES, Handles, first_words
from tradewind.store.local import written_whole

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

    from tradewind.store.handles import Handle

T = TypeVar("T")
_ATTEMPTS = 6  # of a create: with the pauses, about ten seconds
_MIB = 1 << 20
_MOST_PARTS = 9_000  # S3 and GCS stop at 10,000
_BUFFERED = 256 * _MIB  # of one upload in memory
_AT_ONCE = 16  # small requests


class ObjectStore:
    """`url`: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`."""

    def __init__(
        self,
        url: str,
        *,
        env: Mapping[str, str] | None = None,
        rng: Random | None = None,
        sleep: Callable[[float], None] = clock.sleep,
        timeout_s: float = 30.0,
    ) -> None:
        scheme, _, rest = url.partition("://")
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.strip("/")
        if scheme not in SCHEMES or not bucket or any(c in url for c in "?#@"):
            raise InvalidValue(
                f"{url!r} is not a bucket", hint="for example s3://my-bucket/tradewind"
            )
        if prefix:
            check_key(prefix)
        self.url = f"{scheme}://{bucket}" + (f"/{prefix}" if prefix else "")
        self._prefix = prefix + "/" if prefix else ""
        environment = os.environ if env is None else env
        self._handles = Handles(scheme, bucket, environment, timeout_s=timeout_s)
        self._answered = False
        self._rng = rng or clock.generator()
        self._sleep = sleep

    def get(self, key: str) -> bytes:
        import obstore

        path = self._path(key)
        return self._do(key, lambda handle: bytes(obstore.get(handle, path).bytes()))

    def get_many(self, keys: Sequence[str]) -> list[bytes]:
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        with ThreadPoolExecutor(min(_AT_ONCE, len(keys))) as pool:
            return list(pool.map(self.get, keys))

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        import obstore

        below = self._prefix + check_prefix(prefix)
        start = _start(self._prefix + prefix, self._prefix + check_key(after)) if after else ""

        def listed(handle: Handle) -> list[str]:
            pages = obstore.list(handle, below or None, offset=start or None)
            return [item["path"].removeprefix(self._prefix) for page in pages for item in page]

        found = self._do(prefix or "the store", listed)
        return sorted(key for key in found if key > after and key.startswith(prefix))

    def folders(self, prefix: str) -> list[str]:
        import obstore

        below = self._prefix + check_prefix(prefix)
        found = self._do(
            prefix or "the store",
            lambda handle: obstore.list_with_delimiter(handle, below or None)["common_prefixes"],
        )
        return sorted(path.rstrip("/").removeprefix(below) for path in found)

    def create(self, key: str, data: bytes) -> bool:
        import obstore
        from obstore import exceptions

        path = self._path(key)
        unknown: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(min(4.0, 0.1 * 2**attempt) * (0.5 + self._rng.random()))
            region = self._handles.region
            try:
                obstore.put(self._handles.once, path, data, mode="create", use_multipart=False)
                return True
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                try:
                    there = self.get(key)
                except NotFound:
                    continue  # another's is under way, or is gone again
                return unknown is not None and there == data
            except exceptions.GenericError as error:
                if self._handles.move(error, region):
                    continue
                if _is_credentials(error) or regions.is_elsewhere(error):
                    raise self._translated(error, key) from None
                unknown = error
            except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
                raise self._translated(error, key) from None
        if unknown is None:
            raise SourceFailed(
                f"{key} could not be created in {self.url}: others kept trying the same",
                hint="try again",
            )
        try:
            return self.get(key) == data
        except NotFound:
            raise self._translated(unknown, key) from None

    def replace(self, key: str, data: bytes) -> None:
        import obstore

        path = self._path(key)
        self._do(key, lambda handle: obstore.put(handle, path, data, use_multipart=False))

    def delete(self, key: str) -> None:
        import obstore
        from obstore import exceptions

        path = self._path(key)

        def deleted(handle: Handle) -> None:
            try:
                obstore.delete(handle, path)
            except (exceptions.NotFoundError, FileNotFoundError) as error:
                if _is_bucket(error):
                    raise

        self._do(key, deleted)

    def upload(self, key: str, path: Path) -> None:
        import obstore

        target = self._path(key)
        try:
            size = path.stat().st_size
            stream = path.open("rb")
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None

        def sent(handle: Handle) -> None:
            stream.seek(0)
            obstore.put(handle, target, stream, **_parallel(size))

        with stream:
            self._do(key, sent)

    def upload_parts(
        self, key: str, parts: Iterable[bytes | bytearray | memoryview], size: int
    ) -> None:
        import obstore

        target = self._path(key)
        if not self._answered:  # parts are given once: nothing can be sent again elsewhere
            with suppress(TradewindError):
                self.size(key)
        errors: list[BaseException] = []

        def watched() -> Iterator[bytes | bytearray | memoryview]:
            given = 0
            try:
                for part in parts:
                    given += len(part)
                    yield part
                assert given == size, f"{given} bytes were given, not {size}"
            except BaseException as error:
                errors.append(error)
                raise

        try:
            with self._troubles(key):
                obstore.put(self._handles.retrying, target, watched(), **_parallel(size))
        except Exception:
            if errors:  # not the store's
                raise errors[0] from None
            raise

    def get_range(self, key: str, start: int, length: int) -> memoryview:
        import obstore

        path = self._path(key)
        return self._do(
            key,
            lambda handle: memoryview(obstore.get_range(handle, path, start=start, length=length)),
        )

    def size(self, key: str) -> int:
        import obstore

        path = self._path(key)
        return self._do(key, lambda handle: int(obstore.head(handle, path)["size"]))

    def download(self, key: str, path: Path) -> None:
        import obstore
        from obstore import exceptions

        source = self._path(key)
        answer = self._do(key, lambda handle: obstore.get(handle, source))
        size, tag, done = answer.meta["size"], answer.meta["e_tag"], 0
        with written_whole(path) as stream, self._troubles(key):
            for attempt in range(_ATTEMPTS):
                try:
                    for chunk in answer.stream(min_chunk_size=4 * _MIB):
                        stream.write(chunk)
                        done += len(chunk)
                    if done == size:
                        return
                except exceptions.GenericError:
                    if attempt == _ATTEMPTS - 1 or tag is None:
                        raise
                # Cut off: go on from there, if it is still the same object.
                self._sleep(0.1 * 2**attempt)
                options: Any = {"range": {"offset": done}, "if_match": tag}
                answer = obstore.get(self._handles.retrying, source, options=options)
            raise SourceFailed(f"{key} in {self.url} ended early, again and again")

    def written_s(self, key: str) -> float:
        import obstore

        path = self._path(key)
        return self._do(key, lambda handle: obstore.head(handle, path)["last_modified"].timestamp())

    def _path(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _do(self, key: str, act: Callable[[Handle], T]) -> T:
        """Again, if the bucket turns out to be in another region: nothing was done then."""
        from obstore import exceptions

        with self._troubles(key):
            region = self._handles.region
            try:
                done = act(self._handles.retrying)
            except exceptions.GenericError as error:
                if not self._handles.move(error, region):
                    raise
                done = act(self._handles.retrying)
            except FileNotFoundError:
                self._answered = True
                raise
        self._answered = True
        return done

    @contextmanager
    def _troubles(self, key: str) -> Iterator[None]:
        from obstore import exceptions

        try:
            yield
        except (exceptions.BaseError, FileNotFoundError, PermissionError, TimeoutError) as error:
            raise self._translated(error, key) from None

    def _translated(self, error: Exception, key: str) -> Exception:
        from obstore import exceptions

        # obstore raises Python's own error for some, and its own for others.
        status = re.search(r"status code: (\d{3})", str(error))
        missing = isinstance(error, exceptions.NotFoundError | FileNotFoundError)
        missing = missing or bool(status and status[1] == "404")  # of a listing
        if missing and not _is_bucket(error):
            return no_such(key, self.url)
        if missing:
            return NotFound(
                f"there is no bucket for {self.url}",
                hint="make it first, or check its name, its region and the endpoint",
            )
        if regions.is_elsewhere(error):
            return NoAccess(
                f"{self.url} is not in {self._handles.region}, and S3 does not say where it is",
                hint="set AWS_REGION to the region of the bucket",
            )
        refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
        denied = bool(status and status[1] in ("401", "403"))  # of a listing
        if denied or isinstance(error, (*refused, PermissionError)) or _is_credentials(error):
            return NoAccess(
                f"{self.url} refused access to {key}: {first_words(error)}",
                hint="check the credentials in the environment, and what they permit",
            )
        if isinstance(error, exceptions.PreconditionError):
            return SourceFailed(
                f"{key} in {self.url} was replaced while it was read", hint="try again"
            )
        return SourceFailed(
            f"{self.url} did not answer for {key}: {first_words(error)}",
            hint="try again, and check the network and the endpoint; if it was a write, nobody"
            " knows whether it was done",
        )


def _parallel(size: int) -> dict[str, Any]:
    """Of an upload: how large its parts are, and how many of them are sent at once."""
    part = max(8, -(-size // (_MOST_PARTS * _MIB))) * _MIB
    return {"chunk_size": part, "max_concurrency": max(2, min(12, _BUFFERED // part))}


def _start(prefix: str, after: str) -> str:
    """Where the server may begin to list: a little before `after`.

    Servers that keep folders order `a-b` behind all of `a/…`, and would leave those out. A name
    cut before the first character that sorts below `/`, and one more, is before them either way."""
    if not after.startswith(prefix):
        return ""
    rest = after[len(prefix) :]
    cut = next((n for n, c in enumerate(rest) if c < "/"), len(rest))
    name = rest[: max(0, cut - 1)]
    if name.endswith("/"):  # then the folder's own name, and one character less
        name = name[:-2]
    return prefix + name if name and not name.endswith("/") else ""


def _is_bucket(error: Exception) -> bool:
    return any(word in str(error) for word in ("NoSuchBucket", "ContainerNotFound"))


def _is_credentials(error: Exception) -> bool:
    """Not being able to say who we are comes as a failed request of another kind."""
    words = str(error).lower()
    return any(
        word in words for word in ("169.254.169.254", "metadata.google", "credential", "azure cli")
    )
