"""Types of what machines and jobs say of themselves: msgspec refuses values outside of these bounds
when it reads them. They are far beyond what can be true, and small enough to be reckoned with:
whoever adds, divides or prints them meets no infinity, and no number that is longer than a page."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Code = Annotated[int, Meta(ge=-(2**31), le=2**31)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Rate = Annotated[float, Meta(ge=1e-12, le=1e15)]
"""Of what is divided by."""
Signed = Annotated[float, Meta(ge=-1e30, le=1e30)]
Money = Annotated[int, Meta(ge=0, le=10**15)]
"""Micro-dollars: a thousand million dollars."""
Few = Annotated[int, Meta(ge=-(10**6), le=10**6)]
"""Of machines, and what is counted beside them."""
Moment = Annotated[int, Meta(ge=-(10**9), le=10**11)]
"""Seconds since 1970 by some clock, or a length of time: until the year 5138."""
Span = Annotated[float, Meta(ge=-1e11, le=1e11)]
"""The same with parts of seconds."""
Label = Annotated[str, Meta(max_length=256)]
MOST_WORDS = 4096
Words = Annotated[str, Meta(max_length=MOST_WORDS)]
