"""What every page of ours has: one file that needs nothing but itself.

Style and script lie as files in `assets` and are put into the page. The page's policy lets exactly
those in, by their hashes, and no request out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files


def asset(name: str) -> str:
    return (files("tradewind.web") / "assets" / name).read_text(encoding="utf-8").strip()


def style(name: str) -> str:
    """The page's own, after what all share."""
    return f"{asset('base.css')}\n\n{asset(name)}"


def head(title: str, style: str, script: str = "") -> str:
    """All before the body. The title is HTML."""
    policy = f"default-src 'none'; style-src {_hash(style)}"
    if script:
        policy += f"; script-src {_hash(script)}"
    return filled(asset("head.html"), {"policy": policy, "title": title, "style": style})


def filled(template: str, parts: Mapping[str, str]) -> str:
    """One pass over the template: what was put in is not looked at again."""
    pieces = template.split("{{")
    text = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        text += [parts[name], rest]
    return "".join(text)


def _hash(text: str) -> str:
    """Of what stands between the tags, the line breaks around it included."""
    digest = sha256(f"\n{text}\n".encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"
