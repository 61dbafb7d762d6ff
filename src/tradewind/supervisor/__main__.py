"""`python -m tradewind.supervisor boot.json`: a machine's supervisor, until the machine is to go.

0: the machine is to be shut down, all is done. Other codes are those of the command line
(docs/exit-codes.md): the supervisor could not begin.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tradewind import store
from tradewind.errors import TradewindError
from tradewind.store import meter
from tradewind.supervisor import notice
from tradewind.supervisor.folder import MachineFolder, read_boot
from tradewind.supervisor.runtime import Supervisor
from tradewind.supervisor.watch import Watch


def main(argv: list[str], *, speed: float = 1.0) -> int:
    if len(argv) != 1:
        print("usage: python -m tradewind.supervisor boot.json", file=sys.stderr)  # noqa: T201
        return 2
    path = Path(argv[0]).absolute()
    try:
        boot = read_boot(path)
        folder = MachineFolder(path.parent)
        folder.lock()
        os.environ[meter.VARIABLE] = str(folder.used)
        watch = Watch(folder.up_since_s(boot), speed)
        supervisor = Supervisor(
            boot, store.open(boot.store_url), folder, watch, notice.source(boot.notice)
        )
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: supervisor.end(f"signal {number} from outside"))
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
