"""What a cloud's folder gives to the rest: `CLOUD` in its cloud.py, and `ABOARD` in its aboard.py.

Nothing is asked of the vendor, and no library of its own is imported, before a method is called.
What is set up at a cloud for a store is its footprint, which lies in that store as
`providers/NAME.json`. Clouds know nothing of stores: what machines need of one is handed to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from tradewind.model.beside import Beside
from tradewind.model.finding import Finding
from tradewind.model.ratecard import RateCard
from tradewind.model.run import Facts, Machine, Spec, Way
from tradewind.model.secrets import Reference
from tradewind.model.usage import Rates
from tradewind.providers.base import Provider
from tradewind.providers.boot.luggage import Pack
from tradewind.providers.changes import Line, Prepared
from tradewind.providers.offered import Offering, Types
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
    """As pip calls it."""
    least: str
    needed_for: str
    module: str = ""
    """As it is imported, where that is another name."""


class Setting(Struct, frozen=True, kw_only=True):
    """An option of `tradewind setup CLOUD`, besides those that every cloud has."""

    name: str
    words: str
    metavar: str = ""
    """Empty: it is said or not."""
    many: bool = False
    """It may be said several times; its value is then a tuple."""

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
    lent: tuple[str, ...]
    """Of stores that its machines are nobody to, and are lent passes to (store/lending)."""
    settings: tuple[Setting, ...]
    pythons: tuple[str, ...]
    """Of its usual images."""
    library: Library | None
    """None: the cloud is asked without one."""
    older_s: int
    """For so long the buckets that it sets up keep what is large and was removed or replaced."""

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

    def check(self, footprint: Any, store_url: str) -> None:
        """BadFile: what stands there is not what setup writes for this store. Pure; what only the
        cloud can tell is compared before a launch."""

    def opened(self, footprint: Any, owner: str, pack: Pack) -> Provider: ...

    def links(self, footprint: Any, store_url: str) -> Links: ...

    def environment(self, footprint: Any, env: Mapping[str, str]) -> dict[str, str]:
        """Variables by which a machine finds the store, and is somebody to it."""

    def usable(self, footprint: Any, ways: Sequence[Way], store_url: str) -> Usable:
        """Raises where these credentials can launch nothing at all."""

    def beside(self, footprint: Any | None, region: str, instance_type: str, market: str) -> Beside:
        """What is charged for beside a machine's price; without a footprint, as it usually is."""

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


@runtime_checkable
class Lends(Protocol):
    """A cloud that sets up a role for lending passes to its kind of bucket."""

    def lent_role(self, footprint: Any) -> str:
        """Its name; "": none was asked for."""


@runtime_checkable
class Waits(Protocol):
    """A cloud that has the same machines for less, or has them at all, for whoever waits."""

    def waited_for(self, way: Way, card: RateCard) -> Way | None:
        """The same as an on-demand way, by its queue; None: these cannot be waited for."""


@runtime_checkable
class Offers(Protocol):
    """A cloud with machines of an account's own, which no catalog has."""

    def offers(self, footprint: Any, types: Types) -> Offering:
        """What there is, at every place of the footprint that answers. Raises where none does."""


@runtime_checkable
class Identifies(Protocol):
    """A cloud whose machines are somebody to a store, or nobody, as they were set up, and not by
    the kind of the store alone. Its `links` to any store are signed by whoever uses this computer;
    a bucket's own cloud, where that is set up too, does it better."""

    def lends(self, footprint: Any, store_url: str) -> bool:
        """Whether any of its machines needs a pass."""


@runtime_checkable
class Named(Protocol):
    """A cloud whose places are no regions of a vendor's: `setup` has another option for them."""

    place: str
    """The option's name, as `context`."""
    place_words: str


@runtime_checkable
class Reached(Protocol):
    """A cloud whose machines are reached by what was set up, and not by their names alone."""

    def shell_at(
        self, footprint: Any, machine: Machine, key: str, words: Sequence[str]
    ) -> list[str]:
        """As `Cloud.shell`."""


@runtime_checkable
class Contained(Protocol):
    """A cloud whose machines are containers, of an image that a job may name."""

    def image(self, footprint: Any, way: Way, wanted: str) -> str:
        """That a job runs in; `wanted`: that it names."""


class Lease(Struct, frozen=True, kw_only=True):
    """What becomes of one device that several people use."""

    place: str
    device: str
    state: str
    who: str = ""
    """In words; "": nobody."""


@runtime_checkable
class Shared(Protocol):
    """A cloud whose devices are used by others too, who have nothing to do with the store."""

    def leases(self, footprint: Any) -> list[Lease]:
        """All there are, now. A place that does not answer is one line, and says why."""


@runtime_checkable
class Inspected(Protocol):
    """A cloud whose machines were looked at when they were set up: it has no usual images."""

    def pythons_at(self, footprint: Any) -> tuple[str, ...]:
        """Instead of `Rentable.pythons`, and all there are."""


class Notice(Protocol):
    """Whether the cloud has told that it will take this machine: called without arguments, it
    answers at once. None: no notice; else the seconds that are left, 0 where it does not say."""

    @property
    def at_risk(self) -> bool:
        """One is likely, by the cloud's own word."""

    def __call__(self) -> float | None: ...


@runtime_checkable
class Signalled(Protocol):
    """A notice that is no question to anybody: it comes as SIGTERM, and the machine ends a while
    after it, as containers do. With what there was to save saved and told, nothing is waited for.
    """

    def heard(self) -> None:
        """From a signal handler: the time that is left begins."""


class Aboard(Protocol):
    """A cloud's part on its machines: nothing but the standard library, and `model`."""

    def notice(self) -> Notice: ...

    def secret(self, reference: Reference, *, rented: bool) -> str:
        """Its value; `rented`: by the machine's own identity, else by this user's."""
