"""One of many processes that create the same keys at once; says which it won.

python -m tests.store.racer URL NAME COUNT    starts when a line comes on standard input
"""

from __future__ import annotations

import sys

from tradewind import store

if __name__ == "__main__":
    url, name, count = sys.argv[1:]
    opened = store.open(url)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(count)):
        if opened.create(f"race/{number:04d}", name.encode()):
            sys.stdout.write(f"{number}\n")
