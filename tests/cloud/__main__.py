from __future__ import annotations

import argparse
from pathlib import Path

from tests.cloud.server import serve

parser = argparse.ArgumentParser(prog="python -m tests.cloud", description="a cloud with bodies")
parser.add_argument("face", help="a module that has a FACE: tests.cloud.faces.NAME")
parser.add_argument("--port", type=int, default=0, help="0: any; the file `url` in --state tells")
parser.add_argument("--state", type=Path, required=True, help="a folder")
parser.add_argument("--bodies", choices=("none", "process", "netns", "auto"), default="auto")
given = parser.parse_args()
given.state.mkdir(parents=True, exist_ok=True)
serve(given.face, given.state.resolve(), given.port, given.bodies)
