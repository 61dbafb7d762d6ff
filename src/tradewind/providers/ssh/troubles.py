"""What ssh says, in one table, and what each means to us.

OpenSSH ends with 255 and tells why in words. Those of this table come before anybody is let in, so
nothing was done on the host. Whatever else it says leaves that open.
"""

from __future__ import annotations

import re

from msgspec import Struct

from tradewind.base.errors import NoAccess, SourceFailed, TradewindError
from tradewind.providers.base import OutcomeUnknown


class Unreachable(SourceFailed):
    """Nothing was done there, and nothing is known of it."""


class Row(Struct, frozen=True):
    said: str
    """A regular expression, of a line."""
    words: str
    hint: str
    lasting: bool = True
    """Somebody must do something about it: the host answers, and says no."""


TABLE = (
    Row(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that is known here",
        "if the host was installed anew: ssh-keygen -R {host}, then `ssh {target}` once, and"
        " compare the new key; else somebody may be in between",
    ),
    Row(
        r"Host key verification failed|No .* host key is known for",
        "its host key is not known here",
        "`ssh {target}` once, and compare the key that it shows",
    ),
    Row(
        r"Permission denied|Too many authentication failures|no mutual signature",
        "it lets nobody in without a question",
        "`ssh -o BatchMode=yes {target} true` must work: a key in ~/.ssh or in your agent",
    ),
    Row(
        r"Bad configuration option|terminating, .* bad configuration|Bad owner or permissions",
        "ssh cannot read its configuration here",
        "`ssh {target}` says what is wrong",
    ),
    Row(
        r"Could not resolve hostname",
        "its name is unknown",
        "look for a typing error, or give it a HostName in ~/.ssh/config",
    ),
    Row(
        r"^ssh: connect to host .*: ",
        "it cannot be reached",
        "is it on, and in this network? `ssh {target}`",
        lasting=False,
    ),
    Row(
        r"^kex_exchange_identification: |^banner exchange: |"
        r"^Connection (closed|reset) by .* port \d+|^Connection timed out during banner exchange|"
        r"^ssh_dispatch_run_fatal: |^stdio forwarding failed|^channel \d+: open failed",
        "it hangs up before anybody is let in",
        "`ssh {target}` tries it again; a server that has too many connections at once does so",
        lasting=False,
    ),
)


def error(name: str, target: str, said: str, doing: str) -> TradewindError:
    """Of a connection that ended with 255."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for row in TABLE:
        if any(re.search(row.said, line) for line in lines):
            host = target.rpartition("@")[2]
            hint = row.hint.format(target=target, host=host)
            words = f"{doing}: host {name}: {row.words}"
            if row.lasting:
                return NoAccess(words, hint=hint)
            return Unreachable(f"{words} ({lines[-1]})", hint=hint)
    last = lines[-1] if lines else "it said nothing"
    return OutcomeUnknown(f"{doing}: the connection to host {name} was lost: {last}")
