"""Everything Tradewind raises on purpose.

    TradewindError            1  something we cannot name better
    ├── InvalidValue          2  a value the user gave cannot be understood
    │   └── BadWorkload       2  a workload, file or flags, with everything that is wrong with it
    ├── NotFound              3  no such name, or nothing matches
    ├── BadFile               4  a file of ours or the user's is damaged or malformed
    │   └── TooLarge          4  it is larger than anything of its kind, and was not read
    ├── NoAccess              5  a file, folder, bucket or account refuses us, or cannot be used
    ├── SourceFailed          6  an outside source did not answer, or answered nonsense
    └── MissingExtra          7  an optional dependency is not installed

The number is the exit code of the command line. A new class earns its place only when a caller
would act differently on it; the message says what is wrong and where, the hint what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence


class TradewindError(Exception):
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


def bug(what: str, error: Exception) -> TradewindError:
    """What nobody has thought of, met with one of many things: the others shall not suffer."""
    trouble = TradewindError(
        f"this is a bug in Tradewind, met with {what}: {type(error).__name__}: {error}",
        hint="please report it; other runs are not affected",
    )
    trouble.__cause__ = error
    return trouble


class InvalidValue(TradewindError, ValueError):
    exit_code = 2


class BadWorkload(InvalidValue):
    """`problems` are all that was found: the line (0: not from a file) and what is wrong there.

    An InvalidValue and no BadFile: the file is what the user asks for, not something of ours."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        problems: Sequence[tuple[int, str]] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class NotFound(TradewindError, LookupError):
    """`choices` are the names that were meant, or might have been."""

    exit_code = 3

    def __init__(
        self, message: str, *, hint: str | None = None, choices: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.choices = tuple(choices)


class BadFile(TradewindError):
    exit_code = 4


class TooLarge(BadFile):
    """Who reads what others may write (heartbeats) treats it as absent."""


class NoAccess(TradewindError):
    exit_code = 5


class SourceFailed(TradewindError):
    """`status` is what the source answered by HTTP, where that was the trouble."""

    exit_code = 6

    def __init__(self, message: str, *, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class MissingExtra(TradewindError, ImportError):
    exit_code = 7
