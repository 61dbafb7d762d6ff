"""From any spelling of an accelerator to our name for it.

People and vendors write `a100`, `A100 80G`, `NVIDIA A100-SXM4-80GB`, `nvidia-tesla-v100`, `h100:8`,
`8xH100-SXM`, `trn1`, `v5e-16`. A name is cut into atoms (`rtx`, `a6000`, `80gb`, `sxm`); it means
every accelerator that has all of them. If those are variants of one chip (the A100s), the name is
that family; if they are different chips (`6000`), it is ambiguous, and the choices are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model import Accelerator

# Words that tell nothing between the chips we know.
_NOISE = frozenset(
    "nvidia amd tesla geforce gpu gpus instinct google aws amazon habana intel xilinx tensor core "
    "graphics accelerator edition generation hgx dgx hbm2 hbm2e hbm3 hbm3e cloud mega chip device "
    "virtex alveo blackwell server oam nvl72 ac slice pod podslice gen3 gen4 gen5".split()
)
_SYNONYMS = {
    "trn1": "trainium1", "trn1n": "trainium1", "trn2": "trainium2", "trn3": "trainium3",
    "inf1": "inferentia1", "inf2": "inferentia2",
    "v5lite": "v5e", "v5litepod": "v5e", "v6lite": "v6e", "trillium": "v6e",
    "ironwood": "v7x", "v7": "v7x", "tpu7x": "v7x", "tpu7": "v7x",
    "mi300": "mi300x", "mi325": "mi325x", "mi355": "mi355x",
    "sxm2": "sxm", "sxm3": "sxm", "sxm4": "sxm", "sxm5": "sxm", "sxm6": "sxm",
    "pcie3": "pcie", "pcie4": "pcie", "pcie5": "pcie",
    "workstation": "ws", "wk": "ws", "s": "se", "vu9": "vu9p", "q": "quadro",
    "gaudi1": "gaudi", "hl205": "gaudi", "hl225": "gaudi2", "hl325": "gaudi3",
}  # fmt: skip
# What a name may also carry, beyond the words of our own name for it.
_EXTRA = {
    "A100-40GB": "sxm", "A100-80GB": "sxm", "H200": "sxm",
    "B200": "sxm 192gb", "B300": "sxm 288gb", "GH200": "480gb 144gb",
    "P4000": "quadro", "M4000": "quadro",
    "V100-16GB": "sxm pcie", "V100-32GB": "sxm pcie", "P100": "sxm pcie",
    "Trainium1": "trainium trn", "Trainium2": "trainium trn", "Trainium3": "trainium trn",
    "Inferentia1": "inferentia inf", "Inferentia2": "inferentia inf",
    "RTX-PRO-6000": "se",
}  # fmt: skip
# Variants of one chip differ only in these: a name without them means the whole family.
_VARIANT = re.compile(r"sxm|pcie|nvl|\d+gb|se|ws")
# Slices of these TPUs are named by cores, two to a chip: v5p-8 is four chips.
_TWO_CORES = frozenset({"TPU-v2", "TPU-v3", "TPU-v4", "TPU-v5p"})
# Spellings whose words alone mislead: the driver's name of an H100 SXM does not say SXM.
_WHOLE = {"h10080gbhbm3": "H100-SXM", "h100mega80gb": "H100-SXM", "h100mega": "H100-SXM"}
_MOST = 100_000  # accelerators in one machine or slice
# Words that people write apart and we do not: Gaudi 2, v5 lite, hl-225, 40 GB.
_JOINED = (
    (re.compile(r"\b(gaudi|trainium|inferentia|trn|inf|hl)[\s_-]+(?=\d)"), r"\1"),
    (re.compile(r"\b(v\d)[\s_-]*lite(?:[\s_-]*pod)?"), r"\1lite"),
    (re.compile(r"(\d)\s+(g|gb|gib)\b"), r"\1\2"),
)


@dataclass(frozen=True, slots=True)
class Match:
    """The accelerators a name stands for, and the count it carries, if any (`h100:8`)."""

    names: tuple[str, ...]
    count: float | None = None


class Names:
    """The spellings of one set of accelerators."""

    def __init__(self, accelerators: Mapping[str, Accelerator]) -> None:
        self._vocabulary: set[str] = set(_SYNONYMS) | _NOISE | {"tpu", "fpga", "sxm", "pcie"}
        self._core: dict[str, frozenset[str]] = {}
        self._plain: dict[str, frozenset[str]] = {}  # with its memory
        self._atoms: dict[str, frozenset[str]] = {}  # with all that a name may carry
        self._memory_gb = {name: a.memory_gb for name, a in accelerators.items()}
        for name, accelerator in accelerators.items():
            # Our own names are cut at dashes and after words like RTX, so the vocabulary learns
            # the atoms by which run-together spellings (`rtx4090`, `h100sxm`) can be cut.
            words = re.sub(r"(rtx)(?=\d)", r"\1-", name.lower()).split("-")
            core = frozenset(words)
            # Nobody tells TPUs apart by memory, and a number behind one is the size of a slice.
            memory = set() if "tpu" in core else {f"{accelerator.memory_gb:g}gb"}
            self._core[name] = core
            self._plain[name] = core | memory
            self._atoms[name] = core | memory | set(_EXTRA.get(name, "").split())
            self._vocabulary |= self._atoms[name]

    def resolve(self, text: str) -> Match:
        """The accelerators that `text` names. Raises NotFound (with choices) or InvalidValue."""
        stripped = text.strip()
        if not re.search(r"[^\W\d]|\d{3}", stripped) or len(stripped) > 80:
            raise InvalidValue(
                f"{stripped[:40]!r} is not the name of an accelerator",
                hint="for example H100-SXM or a100:8",
            )
        if stripped[-1] in ":*×":
            raise InvalidValue(f"{text!r}: there is no number behind {stripped[-1]!r}")
        # A plain sign of a count comes first: `v100:16` is sixteen, not the one with 16 GB.
        base, count = _split(stripped, _COUNTED)
        if count is None:
            sliced = self._tpu_slice(stripped)
            if sliced:
                return sliced
            found = self._match(stripped)
            if found:
                return Match(found)
            splits = (_split(stripped, pattern) for pattern in _COUNTED_PERHAPS)
            for base, count in splits:
                if count is not None and self._match(base):
                    break
            else:
                raise self._unknown(stripped)
        assert count is not None
        if not 0 < count <= _MOST:
            raise InvalidValue(
                f"{text!r}: {count:g} is not a number of accelerators",
                hint="for example h100:8 or 8xH100-SXM",
            )
        if self._tpu_slice(base):
            raise InvalidValue(f"{text!r} names two numbers of chips", hint="for example v5e-16")
        found = self._match(base)
        if not found:
            raise self._unknown(base)
        return Match(found, count)

    def one(self, text: str) -> str:
        """The single accelerator that `text` names; a family is ambiguous here."""
        names = self.resolve(text).names
        if len(names) > 1:
            raise ambiguous(text, names)
        return names[0]

    def variant(self, text: str) -> tuple[Match, float | None]:
        """As `resolve`, for asking what a chip can do and not who rents it out: of `H100-SXM-96`
        the chip that we know, and the GB of memory that this one has instead."""
        told = re.fullmatch(r"(?i)(.*[a-z].*?)[\s_-]+(\d{1,3})\s*(?:g|gb|gib)?", text.strip())
        try:
            found = self.resolve(text)
        except NotFound as error:
            if not told or (error.choices and "ambiguous" in error.message):
                raise
            try:
                found = self.resolve(told[1])
            except NotFound:
                raise error from None
            found = Match(
                tuple(n for n in found.names if self._may_have(n, int(told[2]))), found.count
            )
            if not found.names:
                raise
        memory_gb = int(told[2]) if told else 0
        known = [self._has_memory(name, memory_gb) for name in found.names]
        if any(known) or not all(self._may_have(name, memory_gb) for name in found.names):
            return found, None
        return found, float(memory_gb)

    def _may_have(self, name: str, memory_gb: float) -> bool:
        """Makers double a chip's memory at most; a TPU's number is the size of a slice."""
        own = self._memory_gb[name]
        return not name.startswith("TPU") and own / 2 <= memory_gb <= 2 * own

    def canonical(self, text: str, memory_gb: float | None = None) -> str | None:
        """Our name for a vendor's spelling, or None where that is not one certain chip."""
        names = self._candidates(_split(text.strip(), _COUNTED)[0])
        if len(names) > 1 and memory_gb:
            names = [n for n in names if self._has_memory(n, memory_gb)]
        return names[0] if len(names) == 1 else None

    def memory_gb(self, name: str) -> float:
        return self._memory_gb[name]

    def _has_memory(self, name: str, memory_gb: float) -> bool:
        # Vendors count in GB or GiB and round as they like.
        own = self._memory_gb[name]
        return abs(memory_gb - own) <= 0.08 * own

    def _candidates(self, text: str) -> list[str]:
        """Every accelerator that `text` may mean: one, if it is just that one's name."""
        whole = _WHOLE.get(re.sub(r"[^a-z0-9]|^nvidia", "", text.lower()))
        if whole in self._core:
            return [whole]
        atoms = self._cut(text)
        if all(re.fullmatch(r"\d+gb", atom) for atom in atoms):
            return []  # a size alone is no name
        for spelling in (self._core, self._plain, self._atoms):
            exact = [name for name, full in spelling.items() if atoms == full]
            if len(exact) == 1:
                return exact
        return [name for name, full in self._atoms.items() if atoms <= full]

    def _match(self, text: str) -> tuple[str, ...]:
        found = self._candidates(text)
        families = {frozenset(a for a in self._core[n] if not _VARIANT.fullmatch(a)) for n in found}
        if len(families) > 1:
            raise ambiguous(text, found)
        return tuple(found)

    def _cut(self, text: str) -> frozenset[str]:
        atoms: set[str] = set()
        lowered = text.lower()
        for pattern, joined in _JOINED:
            lowered = pattern.sub(joined, lowered)
        for piece in re.split(r"[^a-z0-9.]+", lowered):
            if piece:
                atoms.update(self._segment(piece) or [piece])
        cut = (_SYNONYMS.get(atom, atom) for atom in atoms)
        return frozenset(atom for atom in cut if atom not in _NOISE)

    def _segment(self, piece: str) -> list[str] | None:
        """`piece` as words of the vocabulary, longest first: rtxa6000 → rtx a6000."""
        known = self._word(piece)
        if known:
            return [known]
        for cut in range(len(piece) - 1, 1, -1):
            head = self._word(piece[:cut])
            rest = self._segment(piece[cut:]) if head else None
            if head and rest:
                return [head, *rest]
        return None

    def _word(self, text: str) -> str | None:
        if text in self._vocabulary:
            return text
        memory = re.fullmatch(r"(\d+)(g|gb|gib)?", text)
        if memory and f"{memory[1]}gb" in self._vocabulary:
            return f"{memory[1]}gb"
        return None

    def _tpu_slice(self, text: str) -> Match | None:
        found = re.fullmatch(r"(?i)(.*[a-z])[\s_-]*(\d+)|(.*\d)[\s_-]+(\d+)", text)
        if not found:
            return None
        base, digits = found[1] or found[3], found[2] or found[4]
        names = self._candidates(base)
        if len(names) != 1 or not names[0].startswith("TPU"):
            return None
        size = int(digits)
        if not 0 < size <= _MOST:
            raise InvalidValue(f"{text!r}: {size} is not the size of a TPU slice")
        return Match(tuple(names), size / 2 if names[0] in _TWO_CORES else size)

    def _unknown(self, text: str) -> NotFound:
        import difflib

        spellings = {name.lower(): name for name in self._core}
        spellings |= {"".join(sorted(core)): name for name, core in self._core.items()}
        close = difflib.get_close_matches(text.lower(), spellings, n=4, cutoff=0.5)
        choices = tuple(dict.fromkeys(spellings[c] for c in close))[:3]
        return NotFound(
            f"no accelerator is called {text!r}",
            hint=(f"did you mean {' or '.join(choices)}?" if choices else None)
            or "`tradewind accelerators` lists them all",
            choices=choices,
        )


# What people call a provider, and what we do.
_PROVIDERS = {
    "amazon": "aws", "ec2": "aws", "google": "gcp", "microsoft": "azure", "oracle": "oci",
    "datacrunch": "verda", "lambdalabs": "lambda", "ovh": "ovhcloud", "do": "digitalocean",
    "samsung": "scp", "prime-intellect": "primeintellect", "vastai": "vast", "vast.ai": "vast",
    "ibmcloud": "ibm",
}  # fmt: skip


def provider_name(text: str) -> str:
    """Our name for a provider: `Google` → `gcp`. A name we do not know stays as it is."""
    plain = text.strip().lower()
    return _PROVIDERS.get(plain, plain)


def nearest(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names like `text`, for a hint."""
    import difflib

    spellings = {name.lower(): name for name in known}
    return tuple(spellings[c] for c in difflib.get_close_matches(text.lower(), spellings, n=3))


# `8xH100`, `8 × H100`, `H100:8`, `H100*8`; and where nothing else fits, `4x4090` and `H100x8`.
_N = r"(?P<count>\d+(?:\.\d+)?)"
_COUNTED = rf"{_N}\s*[x×*]\s*(?P<name>\D.*)|(?P<name2>.+?)\s*[:*×]\s*(?P<count2>-?\d+(?:\.\d+)?)"
_COUNTED_PERHAPS = (rf"{_N}\s*x\s*(?P<name>.+)", rf"(?P<name>.+?)\s*x\s*{_N}")


def _split(text: str, pattern: str) -> tuple[str, float | None]:
    """The name and the count in `text`, if it has the form of `pattern`."""
    found = re.fullmatch(pattern, text, re.IGNORECASE)
    if not found:
        return text, None
    parts = found.groupdict()
    return parts["name"] or parts["name2"], float(parts["count"] or parts["count2"])


def ambiguous(text: str, names: Sequence[str]) -> NotFound:
    return NotFound(
        f"{text!r} is ambiguous: it may be {', '.join(names)}",
        hint=f"name one of them, for example {names[0]}",
        choices=names,
    )
