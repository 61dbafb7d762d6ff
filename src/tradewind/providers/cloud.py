"""What a cloud's folder gives to the rest: `CLOUD` in its cloud.py, and `ABOARD` in its aboard.py.

Nothing is asked of the vendor, and no library of its own is imported, before a method is called.
What is set up at a cloud for a store is its footprint, which lies in that store as
`providers/NAME.json`. Clouds know nothing of stores: what machines need of one is handed to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tradewind.model.finding import Finding
from tradewind.model.ratecard import RateCard
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.model.secrets import Reference
from tradewind.model.usage import Rates
from tradewind.providers.base import Provider
from tradewind.providers.boot.luggage import Pack
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.usable import Usable


class Footprint(Protocol):
    """What setup has made for one store; each cloud has a kind of its own."""

    @property
    def account(self) -> str:
        """Whose it is: a number, a project, a subscription."""

    @property
    def places(self) -> Mapping[str, Sequence[str]]:
        """Regions where machines may be, and the zones of each."""

    def encoded(self) -> bytes: ...


class Library(Struct, frozen=True, kw_only=True):
    """The vendor's own, which is an extra of ours: nobody installs those of all clouds."""

    extra: str
    package: str
    least: str
    needed_for: str


class Setting(Struct, frozen=True, kw_only=True):
    """An option of `tradewind setup CLOUD`, besides those that every cloud has."""

    name: str
    words: str
    metavar: str = ""
    """Empty: it is said or not."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


class Look(Protocol):
    """At an account, before something is set up or removed."""

    @property
    def store_env(self) -> Mapping[str, str] | None:
        """Variables by which the store is opened from here; None: it is not there yet."""

    def prepared(self, known: Any) -> Prepared[Any]:
        """`known`: the footprint that was written down before, if any."""

    def removed(self, known: Any, *, delete_store: bool) -> list[Line]:
        """What is there, and how it goes."""


class Links(Protocol):
    """To what lies in the store, for machines that are not somebody to it yet."""

    def check(self) -> None:
        """Raises where links would die before a machine has used them."""

    def get(self, key: str, for_s: int) -> str: ...

    def put(self, key: str, for_s: int) -> str: ...


class Cloud(Protocol):
    name: str
    title: str
    """As people write it."""
    facts: Facts

    def shell(self, machine: Machine, key: str, words: Sequence[str]) -> list[str]:
        """What to run to be on a machine; `words` are run there instead of a shell."""

    def check_shell(self, command: Sequence[str]) -> None:
        """Raises what that needs and this computer has not."""


class Rentable(Cloud, Protocol):
    """One that is set up for a store, and paid for."""

    schemes: tuple[str, ...]
    """Of stores that its machines are somebody to, by an identity of their own."""
    settings: tuple[Setting, ...]
    pythons: tuple[str, ...]
    """Of its usual images."""
    library: Library | None
    """None: the cloud is asked without one."""

    @property
    def prints(self) -> Mapping[str, str]:
        """What `setup --print` can print instead of making it, and what that is."""

    def hinted(self, env: Mapping[str, str], user: Path) -> bool:
        """Whether there seem to be credentials: by names and files alone."""

    def checked(self, store_url: str) -> str:
        """The store's URL, in the form that owns things. Raises where its machines cannot be
        somebody to such a store."""

    def decoded(self, data: bytes) -> Any:
        """A footprint, as it was encoded."""

    def opened(self, footprint: Any, owner: str, pack: Pack) -> Provider: ...

    def links(self, footprint: Any, store_url: str) -> Links: ...

    def environment(self, footprint: Any, env: Mapping[str, str]) -> dict[str, str]:
        """Variables by which a machine finds the store, and is somebody to it."""

    def usable(self, footprint: Any, ways: Sequence[Way], store_url: str) -> Usable:
        """Raises where these credentials can launch nothing at all."""

    def priced(self, footprint: Any, spec: Spec, way: Way, card: RateCard) -> Way:
        """With what is charged for beside the machine: disk, address, traffic (charges.py).
        Raises NotFound where the card has no price for one of them."""

    def warnings(
        self, footprint: Any, spec: Spec, regions: Sequence[str], card: RateCard
    ) -> list[str]:
        """What is to be known before machines are bought there, prices that are assumed too."""

    def outside(self, footprint: Any, card: RateCard) -> Rates:
        """What the store costs a computer that is none of its machines."""

    def secrets_hint(self, footprint: Any, store_url: str) -> str:
        """How a secret is put where its machines find it."""

    def checks(self, footprint: Any, *, known: bool, store_url: str) -> Iterable[Finding]:
        """`footprint`: None where nothing is set up, or where that is not `known`."""

    def setup_command(self, store_url: str, *regions: str) -> str:
        """That can be pasted: what makes, or mends, what machines of a store need."""

    def look(self, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]) -> Look: ...

    def printed(
        self, kind: str, store_url: str, regions: Sequence[str], settings: Mapping[str, Any]
    ) -> str:
        """Without asking the cloud anything: whoever prints it need not be who applies it."""

    def notes(self, store_url: str, settings: Mapping[str, Any]) -> list[str]:
        """What is to be known once it is set up."""


class Notice(Protocol):
    """Whether the cloud has told that it will take this machine: called without arguments, it
    answers at once. None: no notice; else the seconds that are left, 0 where it does not say."""

    @property
    def at_risk(self) -> bool:
        """One is likely, by the cloud's own word."""

    def __call__(self) -> float | None: ...


class Aboard(Protocol):
    """A cloud's part on its machines: nothing but the standard library, and `model`."""

    def notice(self) -> Notice: ...

    def secret(self, reference: Reference, *, rented: bool) -> str:
        """Its value; `rented`: by the machine's own identity, else by this user's."""
