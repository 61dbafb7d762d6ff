"""What a rented machine does first: `python3 first.py given.json`, on nothing but Python 3.11.

Asks who it is, takes the kit by its link, checks it, takes its pass to the store where it needs
one, writes boot.json, and becomes the bootstrap that lies in the kit. It travels in what the
machine is told, so it is short; nothing in given.json is secret for longer than the links live. Its
last line is put behind it with the cloud's who.py (told.py).
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import struct
import sys
import tarfile
import time
import urllib.request
import zipfile
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

PAUSES_S = (1, 2, 4, 8, 16, 30)
"""The network comes up while we are running."""
MOST = 1 << 28
"""Bytes of an answer. A longer kit is cut there, and then is not what its hash says."""
REFUSALS = 3
"""A store says no to a link for a moment where a role or a bucket is new; then it means it."""


def again(what: str, do: Any) -> Any:
    pauses, refused = iter(PAUSES_S), 0
    while True:
        try:
            return do()
        except (OSError, http.client.HTTPException) as error:  # the latter: an answer cut short
            pause = next(pauses, None)
            refused += getattr(error, "code", 0) in (400, 403, 404)
            if pause is None or refused >= REFUSALS:
                raise SystemExit(f"{what}: {error}") from None
            print(f"{what}: {error}; again in {pause} s", flush=True)  # noqa: T201
            time.sleep(pause)  # noqa: TID251 -- none of Tradewind is here


def fetch(address: str, method: str = "GET", timeout: float = 10, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(address, method=method, headers=named)
    with urllib.request.urlopen(asked, timeout=timeout) as answer:
        found: bytes = answer.read(MOST)
    return found


def count(folder: Path, store_url: str, *sizes: int) -> None:
    """What was read, for the ledger: as tradewind/store/meter.py writes it."""
    folder.mkdir(exist_ok=True)
    record = struct.pack("<7Q", 0, len(sizes), 0, sum(sizes), 0, 0, 0)
    scheme, _, bucket = store_url.split("/")[:3]
    named = bucket if scheme == "s3:" else scheme + bucket
    (folder / f"{named}.first.used").write_bytes(record)


def fetch_kit(address: str, wanted: str) -> bytes:
    kit = fetch(address, timeout=120)
    digest = hashlib.sha256(kit).hexdigest()
    if digest != wanted:
        raise OSError(f"it is not what it should be: its hash is {digest}")
    return kit


def take_pass(address: str, place: Path) -> int:
    """As tradewind/store/lending/held.py reads it. How old it is, the store's own clock tells. How
    many bytes it has."""
    with urllib.request.urlopen(address, timeout=10) as answer:
        data = answer.read(MOST)
        lent = json.loads(data)
        told = [parsedate_to_datetime(answer.headers[n]) for n in ("Date", "Last-Modified")]
    age_s = max((told[0] - told[1]).total_seconds(), 0)
    lent["lent_s"] = time.monotonic() - age_s  # noqa: TID251
    place.unlink(missing_ok=True)
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(lent, stream)
    return len(data)


def main(path: Path, who: Any) -> None:
    given = json.loads(path.read_bytes())
    home = path.parent
    known = given["boot"] | again("the machine's metadata", lambda: who(fetch))
    (home / "rank").write_text(str(known["rank"]))
    kit = again("the kit", lambda: fetch_kit(given["kit"], given["sha256"]))
    (home / "first.tar").write_bytes(kit)
    with tarfile.open(fileobj=io.BytesIO(kit)) as tar:
        ours = next(member for member in tar if member.name.startswith("tradewind-"))
        wheel = tar.extractfile(ours)
        assert wheel is not None
        with zipfile.ZipFile(io.BytesIO(wheel.read())) as archive:
            program = archive.read("tradewind/supervisor/bootstrap.py")
    (home / "bootstrap.py").write_bytes(program)
    boot = known | {"kit": f"{home / 'first.tar'}#sha256={given['sha256']}"}
    read = [len(kit)]
    if given["first_pass"]:
        link, place = given["first_pass"], home / "pass.json"
        read += [again("the pass to the store", lambda: take_pass(link, place))]
        boot["pass_file"] = str(place)
    (home / "boot.json").write_text(json.dumps(boot))
    count(home / "used", boot["store_url"], *read)
    print(f"{boot['machine_id']} is rank {boot['rank']}", flush=True)  # noqa: T201
    os.execv(
        sys.executable, [sys.executable, "-P", str(home / "bootstrap.py"), str(home / "boot.json")]
    )
