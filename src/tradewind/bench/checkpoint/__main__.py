"""`python3 -m tradewind.bench.checkpoint`: for machines that have torch and nothing of ours."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from pathlib import Path

from tradewind.base.errors import TradewindError
from tradewind.bench.checkpoint.measure import measure
from tradewind.bench.checkpoint.ways import WAYS


def main() -> int:
    ask = argparse.ArgumentParser(prog="tradewind.bench.checkpoint", description=__doc__)
    ask.add_argument("--bytes", type=float, default=18.4e9, help="of the state")
    ask.add_argument("--dir", type=Path, default=Path(), help="on the disk to be measured")
    ask.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    ask.add_argument("--ways", default=",".join(WAYS), help="which, in which order")
    ask.add_argument("--limit", type=float, default=900.0, help="seconds, for all of it")
    given = ask.parse_args()
    warnings.simplefilter("ignore")
    logging.basicConfig(stream=sys.stderr)
    try:
        found = measure(
            given.bytes,
            given.dir.absolute(),
            given.device,
            given.ways.split(","),
            limit_s=given.limit,
            progress=lambda what: sys.stderr.write(f"{what} …\n"),
        )
    except TradewindError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
