"""Runs Slurm's commands on a login node: this computer, or another by the user's own OpenSSH, with
their config, keys, agent, jump hosts and known hosts. Nothing is left running there.

A script goes in by stdin, and each command that it asks with `ask` is answered with its output, its
code and its errors. What is cut off on the way has no last line, and then is no answer.

Unreachable     nothing was run there
OutcomeUnknown  the connection ended in the middle
"""

from __future__ import annotations

import re
import shutil
import subprocess

from msgspec import Struct

from tradewind.base.errors import InvalidValue, NotFound, SourceFailed
from tradewind.providers.base import OutcomeUnknown

CONNECT_S, TIMEOUT_S = 20, 120
_DESTINATION = re.compile(r"(?:[\w.+-]+@)?[\w.:%\[\]-]*?[\w\]](?::(\d{1,5}))?", re.ASCII)
_MARK = "@tw"
_PROLOGUE = f"""\
export LC_ALL=C SLURM_TIME_FORMAT=%s
unset SQUEUE_FORMAT SQUEUE_FORMAT2 SQUEUE_STATES SQUEUE_PARTITION SQUEUE_USERS SQUEUE_NAMES
unset SQUEUE_ACCOUNT SQUEUE_QOS SQUEUE_LICENSES SACCT_FORMAT SLURM_CLUSTERS
command -v squeue > /dev/null 2>&1 || . /etc/profile > /dev/null 2>&1
ask() {{
  asked=$1; shift
  echo "{_MARK} begin $asked"
  {{ errors=$("$@" 2>&1 1>&3 3>&-); code=$?; }} 3>&1
  echo; echo "{_MARK} end $asked $code"
  [ -z "$errors" ] || printf '%s\\n' "$errors" | sed 's/^/{_MARK} error /'
  return $code
}}
echo "{_MARK} ready"
"""


class Unreachable(SourceFailed):
    pass


class Answer(Struct, frozen=True):
    code: int
    text: str
    errors: str

    @property
    def words(self) -> str:
        """Of what went wrong."""
        lines = [each for each in (self.errors or self.text).splitlines() if each.strip()]
        return " ".join(lines[-2:])[:400] or f"it has ended with code {self.code}"


def check(destination: str) -> str:
    """One that OpenSSH would take for an option, or for another program's words, is none."""
    if not destination:
        return ""
    found = _DESTINATION.fullmatch(destination)
    if found is None or destination.startswith("-") or (found[1] and int(found[1]) > 65535):
        raise InvalidValue(
            f"--login {destination!r} is no login node",
            hint="user@host, user@host:port, or a Host of your ~/.ssh/config",
        )
    return destination


class Login:
    """Safe from several threads."""

    def __init__(self, destination: str) -> None:
        self.destination = check(destination)

    @property
    def shown(self) -> str:
        return self.destination or "this computer"

    def command(self, *words: str) -> list[str]:
        """OpenSSH's, to be there."""
        address, port = self.destination, ""
        if re.search(r"[^:]:\d{1,5}$", address):
            address, _, port = address.rpartition(":")
        return ["ssh", *(["-p", port] if port else []), *words, "--", address]

    def ask(
        self, script: str, *, changes: bool = False, timeout_s: int = TIMEOUT_S
    ) -> dict[str, Answer]:
        """By their names, what came of the script's commands."""
        words = ("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")
        command = [*self.command(*words), "exec sh -s"] if self.destination else ["sh", "-s"]
        if shutil.which(command[0]) is None:
            raise NotFound(f"there is no {command[0]} here", hint="install OpenSSH's client")
        text = f"{_PROLOGUE}{script}\necho '{_MARK} done'\n"
        try:
            done = subprocess.run(
                command,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
            out, errors = done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            out = (late.stdout or b"").decode("utf-8", "replace")
            errors = f"no answer within {timeout_s} s"
        lines = out.splitlines()
        if f"{_MARK} done" in lines[-1:]:
            return answers(out)
        why = " ".join(errors.split())[-300:] or "the connection has ended"
        began = f"{_MARK} ready" in lines
        if changes and began:
            raise OutcomeUnknown(f"{self.shown}: {why}", hint=self._hint(why))
        raise Unreachable(f"{self.shown} cannot be asked: {why}", hint=self._hint(why))

    def _hint(self, why: str) -> str:
        if not self.destination:
            return "`squeue` tries it"
        if "host key" in why.lower() or "IDENTIFICATION HAS CHANGED" in why:
            return (
                f"the key of {self.destination} is not the one that you know: ask who runs it, then"
                f" `ssh {self.destination}` by hand; nothing is sent until it is in known_hosts"
            )
        return f"`ssh {self.destination} squeue` tries it; a key or an agent must do without asking"


def answers(out: str) -> dict[str, Answer]:
    """By name; what a login shell prints on its own is in none of them."""
    found: dict[str, Answer] = {}
    texts: list[str] = []
    last = ""
    for line in out.splitlines():
        words = line.split(" ", 3)
        if words[0] != _MARK:
            texts.append(line)
        elif words[1] == "begin":
            texts = []
        elif words[1] == "end":
            last = words[2]
            found[last] = Answer(int(words[3]), "\n".join(texts).strip("\n"), "")
        elif words[1] == "error" and last:
            said = f"{found[last].errors}\n{line.removeprefix(f'{_MARK} error ')}"
            found[last] = Answer(found[last].code, found[last].text, said.strip("\n"))
    return found
