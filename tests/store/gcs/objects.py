"""Buckets and objects. What is known of them is in memory, and in a journal in the folder by which
a new server knows it too; each content is a file. One lock makes every change whole: whoever reads
sees an object before or after it, and preconditions are looked at and acted on in one step."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_FIRST = 1_700_000_000_000_000


class Refused(Exception):
    """`code` is XML's; JSON has another name for each."""

    def __init__(self, status: int, code: str, words: str, details: str = "") -> None:
        super().__init__(words)
        self.status, self.code, self.words, self.details = status, code, words, details


@dataclass
class Entry:
    """One object, as it is now."""

    key: str
    generation: int
    size: int
    md5: str
    """In hexadecimal."""
    made_s: float
    file: str
    metageneration: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    """Content-Type and its like, and x-goog-meta-…"""

    @property
    def etag(self) -> str:
        return f'"{self.md5}"'


@dataclass
class Bucket:
    name: str
    told: dict[str, Any]
    """As the JSON API tells it."""
    entries: dict[str, Entry] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)


@dataclass
class Wanted:
    """Preconditions. 0 of a generation: that there is none."""

    generation: int | None = None
    not_generation: int | None = None
    etag: str = ""


class Objects:
    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._folder, self._now = folder, now
        (folder / "content").mkdir(parents=True, exist_ok=True)
        self.buckets: dict[str, Bucket] = {}
        self._lock = threading.RLock()
        self._generation = _FIRST
        self._files = itertools.count()
        self._uploads: dict[str, dict[int, tuple[Path, str, int]]] = {}
        self._written: dict[tuple[str, str], float] = {}
        self._mark = f"{os.getpid()}-{int(now() * 1000):x}"
        self._remember()
        self._journal = (folder / "journal").open("a")

    def close(self) -> None:
        self._journal.close()

    # -- the journal -------------------------------------------------------------------------------

    def _remember(self) -> None:
        path = self._folder / "journal"
        if not path.exists():
            return
        for line in path.read_text().splitlines():
            try:
                told = json.loads(line)
            except ValueError:  # cut off when the server was killed
                continue
            bucket = self.buckets.get(told.get("bucket", ""))
            if told["do"] == "bucket":
                kept = self.buckets.get(told["name"])
                made = Bucket(told["name"], told["told"])
                if kept:
                    made.entries, made.order = kept.entries, kept.order
                self.buckets[told["name"]] = made
            elif told["do"] == "no bucket":
                self.buckets.pop(told["name"], None)
            elif told["do"] == "put" and bucket:
                self._place(bucket, Entry(**told["entry"]))
                self._generation = max(self._generation, told["entry"]["generation"])
            elif told["do"] == "delete" and bucket:
                self._take(bucket, told["key"])

    def _log(self, **told: Any) -> None:
        self._journal.write(json.dumps(told) + "\n")
        self._journal.flush()

    def _place(self, bucket: Bucket, entry: Entry) -> None:
        if entry.key not in bucket.entries:
            insort(bucket.order, entry.key)
        bucket.entries[entry.key] = entry

    def _take(self, bucket: Bucket, key: str) -> Entry | None:
        found = bucket.entries.pop(key, None)
        if found is not None:
            del bucket.order[bisect_left(bucket.order, key)]
        return found

    # -- buckets -----------------------------------------------------------------------------------

    def put_bucket(self, name: str, told: dict[str, Any]) -> None:
        with self._lock:
            kept = self.buckets.get(name)
            made = self.buckets[name] = Bucket(name, told)
            if kept:
                made.entries, made.order = kept.entries, kept.order
            self._log(do="bucket", name=name, told=told)

    def remove_bucket(self, name: str) -> None:
        with self._lock:
            if self.bucket(name).entries:
                raise Refused(409, "BucketNotEmpty", "The bucket you tried to delete is not empty.")
            del self.buckets[name]
            self._log(do="no bucket", name=name)

    def bucket(self, name: str) -> Bucket:
        found = self.buckets.get(name)
        if found is None:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist.")
        return found

    # -- content -----------------------------------------------------------------------------------

    def fresh(self) -> Path:
        """A file for content that comes."""
        return self._folder / "content" / f"{self._mark}-{next(self._files)}"

    def entry(self, bucket: str, key: str) -> Entry | None:
        with self._lock:
            return self.bucket(bucket).entries.get(key)

    def put(
        self,
        bucket: str,
        key: str,
        file: Path,
        size: int,
        md5: str,
        wanted: Wanted,
        headers: dict[str, str],
        pace_s: float = 0.0,
    ) -> Entry:
        if len(key.encode()) > 1024 or not key:
            raise Refused(400, "KeyTooLong", "The object name is too long or empty.")
        with self._lock:
            there = self.bucket(bucket)
            before = there.entries.get(key)
            self._check(before, wanted)
            now = self._now()
            if pace_s and now < self._written.get((bucket, key), 0.0) + pace_s:
                words = "The rate of requests exceeds the limit for this object."
                raise Refused(429, "SlowDown", words)
            self._written[bucket, key] = now
            self._generation += 1
            made = Entry(key, self._generation, size, md5, now, file.name, headers=headers)
            self._place(there, made)
            self._log(do="put", bucket=bucket, entry=asdict(made))
        if before is not None:
            self._drop(before)
        return made

    def _check(self, entry: Entry | None, wanted: Wanted) -> None:
        generation = entry.generation if entry else 0
        fails = wanted.generation is not None and wanted.generation != generation
        if wanted.not_generation is not None:
            fails = fails or wanted.not_generation == generation
        if wanted.etag:
            fails = fails or entry is None or wanted.etag not in (entry.etag, "*")
        if fails:
            words = "At least one of the pre-conditions you specified did not hold."
            raise Refused(412, "PreconditionFailed", words)

    @contextlib.contextmanager
    def opened(self, bucket: str, key: str, generation: int = 0) -> Iterator[tuple[Entry, Any]]:
        """An object, and its content, whatever becomes of it meanwhile."""
        with self._lock:
            found = self.bucket(bucket).entries.get(key)
            if found is None or generation not in (0, found.generation):
                raise Refused(
                    404,
                    "NoSuchKey",
                    "The specified key does not exist.",
                    f"No such object: {bucket}/{key}",
                )
            stream = (self._folder / "content" / found.file).open("rb")
        with stream:
            yield found, stream

    def delete(self, bucket: str, key: str, wanted: Wanted) -> None:
        with self._lock:
            there = self.bucket(bucket)
            found = there.entries.get(key)
            if found is None:
                words = "The specified key does not exist."
                raise Refused(404, "NoSuchKey", words, f"No such object: {bucket}/{key}")
            self._check(found, wanted)
            self._take(there, key)
            self._log(do="delete", bucket=bucket, key=key)
        self._drop(found)

    def _drop(self, entry: Entry) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._folder / "content" / entry.file).unlink()

    def listed(
        self, bucket: str, prefix: str, delimiter: str, after: str, most: int
    ) -> tuple[list[Entry], list[str], str]:
        """A page: objects, folders, and after what the next one begins ("" for no more). `after` is
        a key, or a folder, all of which is passed over."""
        with self._lock:
            there = self.bucket(bucket)
            at = bisect_left(there.order, prefix)
            if after:
                at = max(at, bisect_right(there.order, after))
            found: list[Entry] = []
            folders: list[str] = []
            last = ""
            while at < len(there.order) and there.order[at].startswith(prefix):
                key = there.order[at]
                cut = key.find(delimiter, len(prefix)) if delimiter else -1
                folder = key[: cut + len(delimiter)] if cut >= 0 else ""
                if folder and after.startswith(folder):
                    at = bisect_left(there.order, folder + "\U0010ffff")
                    continue
                if len(found) + len(folders) == most:
                    return found, folders, last
                if folder:
                    folders.append(folder)
                    at, last = bisect_left(there.order, folder + "\U0010ffff"), folder
                else:
                    found.append(there.entries[key])
                    at, last = at + 1, key
            return found, folders, ""

    # -- uploads in parts --------------------------------------------------------------------------

    def begin(self, bucket: str, key: str) -> str:
        with self._lock:
            self.bucket(bucket)
            name = f"{self._mark}-u{next(self._files)}"
            self._uploads[name] = {}
            return name

    def part(self, upload: str, number: int, file: Path, md5: str, size: int) -> None:
        with self._lock:
            self._upload(upload)[number] = file, md5, size

    def _upload(self, upload: str) -> dict[int, tuple[Path, str, int]]:
        if upload not in self._uploads:
            raise Refused(404, "NoSuchUpload", "The requested upload was not found.")
        return self._uploads[upload]

    def parts(self, upload: str, numbers: list[int]) -> list[Path]:
        with self._lock:
            there = self._upload(upload)
            if not numbers or numbers != sorted(numbers) or set(numbers) - set(there):
                raise Refused(400, "InvalidPart", "One or more of the specified parts is missing.")
            return [there[each][0] for each in numbers]

    def finish(self, upload: str) -> None:
        with self._lock:
            parts = self._uploads.pop(upload, {})
        for file, _, _ in parts.values():
            file.unlink(missing_ok=True)
