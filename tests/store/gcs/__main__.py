from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

from tests.store.gcs.server import Gcs

parser = argparse.ArgumentParser(prog="python -m tests.store.gcs")
parser.add_argument("port", type=int)
parser.add_argument("--state", type=Path, required=True, help="a folder")
parser.add_argument("--bucket", default="runs", help="made where it is not there")
parser.add_argument("--host", default="127.0.0.1")
given = parser.parse_args()
gcs = Gcs(given.state, time.time)
if given.bucket not in gcs.objects.buckets:
    gcs.objects.put_bucket(given.bucket, {"name": given.bucket, "metageneration": "1"})
gcs.serve(given.host, given.port)
threading.Event().wait()
