"""Stores in buckets: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage.

Spoken to through `obstore`, whose requests to create are sent once each: its own retries would
take the echo of our own success for somebody else's. So `create` knows for every attempt whether

- it was done, or
- the key exists. S3 also says so (409 instead of 412) while another's attempt is under way, and
  that one may yet fail; so only what can be read exists, and else it is tried again; or
- nobody knows. If a later attempt then says that the key exists, its content tells whose it is.

What clouds charge for is counted (meter.py). Where to go and as whom: handles.py.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NoAccess, NotFound, SourceFailed, TooLarge
from tradewind.model import buckets
from tradewind.store import meter, regions
from tradewind.store.base import MOST_READ, check_key, check_prefix, check_size, no_such
from tradewind.store.handles import first_words, handle, is_stranger, who_hint
from tradewind.store.lending import held
from tradewind.store.local import written_whole

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

    from tradewind.store.handles import Handle

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
        if scheme not in buckets.STORES or not bucket or any(c in url for c in "?#@"):
            raise InvalidValue(
                f"{url!r} is not a bucket", hint="for example s3://my-bucket/tradewind"
            )
        if prefix:
            check_key(prefix)
        self.url = f"{scheme}://{bucket}" + (f"/{prefix}" if prefix else "")
        self._place = scheme, bucket, (os.environ if env is None else env), timeout_s
        self._moving, self._answered = threading.Lock(), False
        self._prefix = prefix + "/" if prefix else ""
        environment = os.environ if env is None else env
        self._handle = handle(scheme, bucket, environment, retries=4, timeout_s=timeout_s)
        self._once = handle(scheme, bucket, environment, retries=0, timeout_s=timeout_s)
        self._parts = [
            (
                part,
                handle(scheme, bucket, environment, retries=4, timeout_s=timeout_s, part=part),
                handle(scheme, bucket, environment, retries=0, timeout_s=timeout_s, part=part),
            )
            for part in held.parts(scheme, bucket, environment)
        ]
        counted = meter.bucket_of(self.url)
        self.meter = meter.of(counted, environment) if counted else meter.Meter(bucket)
        self._rng = rng or clock.generator()
        self._sleep = sleep

    @regions.followed
    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        import obstore

        path = self._path(key)
        with self._troubles(key), self.meter.refused(reads=1):
            answer = obstore.get(self._at(path), path)
            size = answer.meta["size"]  # as the answer's head says: no more than that is received
            found = bytes(answer.bytes()) if size <= most else b""
        self.meter.add(reads=1, bytes_out=len(found))
        check_size(key, self.url, size, most)
        return found

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        if len(keys) < 2:
            return [self.get(key, most=most) for key in keys]
        with ThreadPoolExecutor(min(_AT_ONCE, len(keys))) as pool:
            return list(pool.map(lambda key: self.get(key, most=most), keys))

    @regions.followed
    def list_after(self, prefix: str, after: str = "") -> list[str]:
        import obstore

        below = self._prefix + check_prefix(prefix)
        found = []
        with self._troubles(prefix or "the store"), self.meter.refused(writes=1):
            start = _start(self._prefix + prefix, self._prefix + check_key(after)) if after else ""
            for page in obstore.list(self._at(below), below or None, offset=start or None):
                found += [item["path"].removeprefix(self._prefix) for item in page]
                self.meter.saw(page)
        self.meter.listed(len(found))
        return sorted(key for key in found if key > after and key.startswith(prefix))

    @regions.followed
    def weigh(self, prefix: str) -> list[tuple[int, float]]:
        import obstore

        below = self._prefix + check_prefix(prefix)
        with self._troubles(prefix or "the store"), self.meter.refused(writes=1):
            found = [
                (item["size"], item["last_modified"].timestamp())
                for page in obstore.list(self._at(below), below or None)
                for item in page
            ]
        self.meter.listed(len(found))
        return found

    @regions.followed
    def folders(self, prefix: str) -> list[str]:
        import obstore

        below = self._prefix + check_prefix(prefix)
        with self._troubles(prefix or "the store"), self.meter.refused(writes=1):
            answer = obstore.list_with_delimiter(self._at(below), below or None)
        found = answer["common_prefixes"]
        self.meter.listed(len(found) + len(answer["objects"]))
        return sorted(path.rstrip("/").removeprefix(below) for path in found)

    @regions.followed
    def create(self, key: str, data: bytes) -> bool:
        import obstore
        from obstore import exceptions

        path = self._path(key)
        unknown: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(min(4.0, 0.1 * 2**attempt) * (0.5 + self._rng.random()))
            asked = self._handle
            try:
                obstore.put(
                    self._at(path, once=True), path, data, mode="create", use_multipart=False
                )
                self.meter.add(writes=1, bytes_in=len(data))
                return True
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
                if self.meter.is_charged(error):
                    self.meter.add(writes=1, bytes_in=len(data))
                try:
                    ours = self._holds(key, data)
                except NotFound:
                    continue  # another's is under way, or is gone again
                return unknown is not None and ours
            except exceptions.GenericError as error:
                if self._is_elsewhere(error, asked):
                    continue
                if _is_credentials(error) or regions.is_elsewhere(error):
                    raise self._translated(error, key) from None
                unknown = error
            except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
                if self.meter.is_charged(error):
                    self.meter.add(writes=1, bytes_in=len(data))
                raise self._translated(error, key) from None
        if unknown is None:
            raise SourceFailed(
                f"{key} could not be created in {self.url}: others kept trying the same",
                hint="try again",
            )
        try:
            return self._holds(key, data)
        except NotFound:
            raise self._translated(unknown, key) from None

    @regions.followed
    def replace(self, key: str, data: bytes) -> None:
        import obstore

        path = self._path(key)
        with self._troubles(key), self.meter.writing(len(data)):
            obstore.put(self._at(path), path, data, use_multipart=False)
        self.meter.replaced(path, len(data))

    @regions.followed
    def delete(self, key: str) -> None:
        import obstore
        from obstore import exceptions

        path = self._path(key)
        with self._troubles(key):
            try:
                obstore.delete(self._at(path), path)
                self.meter.removed(path)
            except (exceptions.NotFoundError, FileNotFoundError) as error:
                if _is_bucket(error):
                    raise

    @regions.followed
    def upload(self, key: str, path: Path) -> None:
        import obstore

        target = self._path(key)
        try:
            size = path.stat().st_size
            stream = path.open("rb")
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        how = _parallel(size)
        parts = -(-size // how["chunk_size"])
        # In one piece, or: begun, in parts, and completed.
        many = 1 if parts < 2 else parts + 2
        with stream, self._troubles(key), self.meter.writing(size, many):
            obstore.put(self._at(target), target, stream, **how)
        self.meter.replaced(target, size)

    @regions.followed
    def upload_parts(
        self, key: str, parts: Iterable[bytes | bytearray | memoryview], size: int
    ) -> None:
        import obstore

        target = self._path(key)
        if not self._answered:  # parts are given once: they cannot be sent again elsewhere
            with suppress(NotFound, NoAccess, SourceFailed):
                self.size(key)
        errors: list[BaseException] = []
        how = _parallel(size)

        def watched() -> Iterator[bytes | bytearray | memoryview]:
            given = 0
            self.meter.add(writes=1)  # it is begun
            try:
                for part in parts:
                    # As it goes: an upload may take minutes, and its machine may not have them.
                    whole = (given + len(part)) // how["chunk_size"] - given // how["chunk_size"]
                    self.meter.add(writes=whole, bytes_in=len(part))
                    given += len(part)
                    yield part
                # The last part, if it is not full.
                self.meter.add(writes=int(given % how["chunk_size"] > 0 or not given))
                assert given == size, f"{given} bytes were given, not {size}"
            except BaseException as error:
                errors.append(error)
                raise

        try:
            with self._troubles(key), self.meter.refused(writes=1):
                obstore.put(self._at(target), target, watched(), **how)
            self.meter.add(writes=1)  # it is completed
        except Exception as error:
            if errors:  # not the store's
                raise errors[0] from None
            # Completed, not told so, and asked again: the upload is not known any more then.
            if not (isinstance(error, NotFound) and self._weighs(key, size)):
                raise
        self.meter.replaced(target, size)

    @regions.followed
    def get_range(self, key: str, start: int, length: int) -> memoryview:
        import obstore

        path = self._path(key)
        with self._troubles(key), self.meter.refused(reads=1):
            found = memoryview(obstore.get_range(self._at(path), path, start=start, length=length))
        self.meter.add(reads=1, bytes_out=len(found))
        return found

    @regions.followed
    def size(self, key: str) -> int:
        import obstore

        path = self._path(key)
        with self._troubles(key), self.meter.refused(reads=1):
            size = int(obstore.head(self._at(path), path)["size"])
        self.meter.add(reads=1)
        return size

    @regions.followed
    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        import obstore
        from obstore import exceptions

        source = self._path(key)
        with self._troubles(key), self.meter.refused(reads=1):
            answer = obstore.get(self._at(source), source)
        self.meter.add(reads=1)
        size, tag, done = answer.meta["size"], answer.meta["e_tag"], 0
        check_size(key, self.url, size, most)
        with written_whole(path) as stream, self._troubles(key):
            for attempt in range(_ATTEMPTS):
                try:
                    for chunk in answer.stream(min_chunk_size=4 * _MIB):
                        stream.write(chunk)
                        done += len(chunk)
                        self.meter.add(bytes_out=len(chunk))
                    if done == size:
                        return
                except exceptions.GenericError:
                    if attempt == _ATTEMPTS - 1 or tag is None:
                        raise
                # Cut off: go on from there, if it is still the same object.
                self._sleep(0.1 * 2**attempt)
                answer = obstore.get(
                    self._at(source), source, options={"range": {"offset": done}, "if_match": tag}
                )
                self.meter.add(reads=1)
            raise SourceFailed(f"{key} in {self.url} ended early, again and again")

    @regions.followed
    def written_s(self, key: str) -> float:
        import obstore

        path = self._path(key)
        with self._troubles(key), self.meter.refused(reads=1):
            written = obstore.head(self._at(path), path)["last_modified"].timestamp()
        self.meter.add(reads=1)
        return written

    def _weighs(self, key: str, size: int) -> bool:
        try:
            return self.size(key) == size
        except (NotFound, NoAccess, SourceFailed):
            return False

    def _holds(self, key: str, data: bytes) -> bool:
        try:
            return self.get(key, most=len(data)) == data
        except TooLarge:
            return False

    def _at(self, path: str, *, once: bool = False) -> Handle:
        """By which what lies there is asked for."""
        for prefix, usual, single in self._parts:
            if path.startswith(prefix):
                return single if once else usual
        return self._once if once else self._handle

    def _path(self, key: str) -> str:
        return self._prefix + check_key(key)

    @contextmanager
    def _troubles(self, key: str) -> Iterator[None]:
        from obstore import exceptions

        asked = self._handle
        try:
            yield
            self._answered = True
        except (exceptions.BaseError, FileNotFoundError, PermissionError, TimeoutError) as error:
            if self._is_elsewhere(error, asked):
                raise regions.Moved(f"{self.url} is in another region") from None
            raise self._translated(error, key) from None

    def _is_elsewhere(self, error: Exception, asked: Handle) -> bool:
        """Has the bucket turned out to be in another region than the one that `asked` leads to?
        Then our handles lead there, and nothing was done yet (regions.py)."""
        scheme, bucket, env, timeout_s = self._place
        if scheme != "s3" or not regions.may_be_elsewhere(error):
            return False
        with self._moving:
            if self._handle is not asked:
                return True  # found out by another thread
            config: Any = self._handle.config
            endpoint, region = config.get("endpoint") or "", config["region"]
            told = None if self._answered else regions.ask(endpoint, bucket, region)
            if told is None or told == region:
                return False
            regions.remember(endpoint, bucket, told, env)
            self._handle = handle(scheme, bucket, env, retries=4, timeout_s=timeout_s)
            self._once = handle(scheme, bucket, env, retries=0, timeout_s=timeout_s)
            return True

    def _translated(self, error: Exception, key: str) -> Exception:
        from obstore import exceptions

        if regions.is_elsewhere(error):
            return NoAccess(
                f"{self.url} is not in the region that was asked, and S3 does not say where it is",
                hint="set AWS_REGION to the region of the bucket",
            )
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
        refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
        denied = bool(status and status[1] in ("401", "403"))  # of a listing
        if denied or isinstance(error, (*refused, PermissionError)) or _is_credentials(error):
            return NoAccess(
                f"{self.url} refused access to {key}: {first_words(error)}",
                hint=who_hint(error, self.url),
            )
        if isinstance(error, exceptions.PreconditionError):
            return SourceFailed(
                f"{key} in {self.url} was replaced while it was read", hint="try again"
            )
        return SourceFailed(
            f"{self.url} did not answer for {key}: {first_words(error)}",
            hint="try again, and check the network and the endpoint; a write may or may not"
            " have happened",
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
    return is_stranger(error) or any(
        word in words for word in ("169.254.169.254", "metadata.google", "credential", "azure cli")
    )
