"""What needs more than an error's two lines: a text for each topic, beside this file.

The first line is its title. Then `says:` has words by which it is known in an error or in what a
run tells, between bars, and `exit:` the exit code that such errors have; `hint: enough` where their
hint says all that most need. Behind an empty line stands the text: paragraphs, each one line, and
commands, which are indented by four blanks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    title: str
    says: tuple[str, ...]
    exit_code: int | None
    told: bool
    """Whether an error says that there is more to read."""
    text: str


def names() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.txt"))


def load(name: str) -> Topic:
    head, _, text = (_FOLDER / f"{name}.txt").read_text("utf-8").partition("\n\n")
    title, *rest = head.splitlines()
    fields = dict(line.split(": ", 1) for line in rest)
    says = tuple(words.strip().lower() for words in fields["says"].split("|"))
    code = fields.get("exit")
    return Topic(
        name, title, says, int(code) if code else None, "hint" not in fields, text.strip("\n")
    )


def every() -> list[Topic]:
    return [load(name) for name in names()]


def more(text: str) -> str | None:
    """The command that explains what is said there, if there is more to say."""
    found = known_by(text)
    return f"tradewind explain {found.name}" if found and found.told else None


def known_by(text: str) -> Topic | None:
    """Whose words are in the text; of several, those that say most."""
    plain = " ".join(text.lower().split())
    found = [(len(words), topic) for topic in every() for words in topic.says if words in plain]
    return max(found, key=lambda each: each[0])[1] if found else None
