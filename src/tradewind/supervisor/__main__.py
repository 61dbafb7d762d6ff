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
from tradewind.base import clock
from tradewind.base.errors import NoAccess, TradewindError
from tradewind.model.boot import Boot
from tradewind.providers.cloud import Signalled
from tradewind.store import meter
from tradewind.store.base import Store
from tradewind.store.lending import held
from tradewind.supervisor import loopback, notice
from tradewind.supervisor.folder import MachineFolder, read_boot
from tradewind.supervisor.runtime import Supervisor
from tradewind.supervisor.watch import Watch

_PATIENCE_S, _PAUSE_S = 60.0, 3.0


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
        if boot.pass_file:
            os.environ[held.VARIABLE] = boot.pass_file  # where it lies, and not what it is
            os.environ.update(loopback.serve(Path(boot.pass_file)))
        watch = Watch(folder.up_since_s(boot), speed)
        told = notice.source(boot.notice)
        supervisor = Supervisor(boot, _opened(boot), folder, watch, told)
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda number, _: supervisor.end(f"signal {number} from outside"))
    if isinstance(told, Signalled):
        signal.signal(signal.SIGTERM, lambda number, _: supervisor.signalled(told))
    supervisor.run()
    return 0


def _opened(boot: Boot) -> Store:
    """A machine that has just come up may not know yet who it is: a rented one is patient."""
    until_s = clock.monotonic() + (_PATIENCE_S if notice.is_rented(boot.notice) else 0.0)
    while True:
        try:
            return store.open(boot.store_url)
        except NoAccess:
            if clock.monotonic() >= until_s:
                raise
        clock.sleep(_PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
