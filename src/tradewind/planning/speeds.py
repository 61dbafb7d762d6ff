"""How long the work takes on each kind of machine, in each number of them. Pure.

Every layout of every kind is estimated in one go. Of those that very likely fit a fast one counts,
and where they differ some that are surer to fit and a little slower: what a plan may lack in time
it must have in memory, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.base.errors import InvalidValue
from tradewind.estimate import answer, columns, hardware, layouts, stacks
from tradewind.estimate.band import half_width, kinds
from tradewind.estimate.cases import Cases
from tradewind.estimate.columns import Model
from tradewind.estimate.constants import Constants
from tradewind.estimate.layouts import Layout
from tradewind.estimate.memory import GB, fit_probability, memory_use
from tradewind.estimate.question import Question, check
from tradewind.estimate.time import step_time
from tradewind.model import Accelerator, Measured, Train

if TYPE_CHECKING:
    from tradewind.planning.goods import Column

SURE = 0.8  # likelihood to fit that a layout must have
_MEASURED_BAND = 0.35  # half-width in the logarithm, for work carried to another chip
_COMPUTE = 0.6  # of unknown work that follows the peak; the rest follows the memory's bandwidth


class Care(NamedTuple):
    """How closely a search looks: which layouts it tries, and which of them it takes."""

    coarse: float = 2.0  # steps between micro-batches that are tried
    fits: tuple[float, ...] = (SURE, 0.9, 0.95, 0.995)
    """For each of these likelihoods to fit, the best layout that has at least it is taken."""
    doubt: float = 0.25
    """Of two, the power of the likelihood to fit that the speed is multiplied by: one that fits
    with 85 % must be 1.04 times as fast as one that surely does."""
    zones: bool = False  # each zone of a region, and not the cheapest alone


USUAL = Care()


class Group(NamedTuple):
    """So many machines of a kind."""

    accelerator: Accelerator
    each: int  # accelerators in a machine
    nodes: int
    network_gbps: float  # of a machine; 0: not known


@dataclass(slots=True)
class Speeds:
    """One entry a group, and after them one for each of `second`. `seconds` is infinite where it
    cannot be done, and `why` says so."""

    seconds: Column
    width: Column  # half of the 80 % band, in the logarithm
    fits: Column  # how likely
    peak_gb: Column
    samples_per_s: Column
    state_bytes: float
    ways: list[Layout | None]
    why: list[str]
    kind_of_why: list[str]  # memory, layout, chip
    precision: list[str]
    stack: list[str]
    band: list[str]
    considered: int
    second: list[int]  # groups that have another layout, too


def of_training(
    train: Train,
    model: Model,
    groups: Sequence[Group],
    constants: Constants,
    *,
    through_xla: bool = False,
    care: Care = USUAL,
) -> Speeds:
    """`through_xla`: accelerators that run nothing else are wanted, though no stack is named."""
    import numpy as np

    found = _nothing(len(groups), _state_bytes(train, model))
    most = max((group.nodes for group in groups), default=1)
    asking = _Asking(train, model, most, through_xla, care.coarse)
    asked: list[Question] = []
    number: list[int] = []
    lists: list[list[Layout]] = []
    for i, group in enumerate(groups):
        known = asking.ways(group)
        if isinstance(known, InvalidValue):
            found.why[i] = known.message
            found.kind_of_why[i] = "layout" if "batch" in known.message else "chip"
            continue
        asked.append(asking.question(group))
        number.append(i)
        lists.append(known)
    if not asked:
        return found
    lengths = np.array([len(known) for known in lists])
    owner = np.repeat(np.arange(len(asked)), lengths)
    cases = asking.cases([groups[i] for i in number], lists, owner)
    use = memory_use(cases, constants)
    likely = fit_probability(cases, use, constants)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    # Recompute costs time, so it is tried only where less of it does not surely fit.
    least, surely = care.fits[0], care.fits[-1]
    worth = (likely >= least) & ~_leaner_fits(cases, likely >= surely, owner)
    rate = np.zeros(len(owner))
    chosen = np.flatnonzero(worth)
    if len(chosen):
        rate[chosen] = step_time(cases.take(chosen), constants).tokens_per_s[...]
    wanted = rate * layouts.preference(cases) * likely**care.doubt
    first, *others = (_best(wanted * (likely >= fits), starts, lengths) for fits in care.fits)
    fitting = np.maximum.reduceat(rate, starts) > 0
    pick = np.where(fitting, first, _best(-use.peak, starts, lengths))
    kept = cases.take(pick)
    width = half_width(kept)
    speaks = kinds(kept)
    samples = train.total_samples
    each = samples * kept.sequence / kept.devices  # tokens

    def put(i: int, j: int, row: int) -> None:
        found.ways[i] = lists[j][row - int(starts[j])]
        found.peak_gb[i] = use.peak[row] / GB
        found.fits[i] = likely[row]
        if rate[row]:
            found.seconds[i] = each[j] / rate[row]
            found.samples_per_s[i] = samples / found.seconds[i]

    for j, i in enumerate(number):
        put(i, j, int(pick[j]))
        found.precision[i] = asked[j].kind_of_number
        found.stack[i] = asked[j].software
        found.width[i], found.band[i] = answer.band_of(asked[j], speaks[j], float(width[j]))
        if not fitting[j]:
            room = hardware.capacity_gb(asked[j].accelerator) * constants["usable_memory"]
            over = found.peak_gb[i] - room
            words = f"does not fit by {over:.0f} GB" if over >= 1 else "hardly fits"
            found.why[i] = f"{words}: it needs {found.peak_gb[i]:.0f} GB an accelerator"
            found.kind_of_why[i] = "memory"
    taken = first
    for fits, other in zip(care.fits[1:], others, strict=True):
        more = np.flatnonzero(fitting & (likely[taken] < fits) & (likely[other] >= fits)).tolist()
        taken = np.where(likely[other] >= fits, other, taken)
        start = len(found.seconds)
        found = _with_more(found, [number[j] for j in more])
        for n, j in enumerate(more):
            put(start + n, j, int(other[j]))
    found.considered = len(owner)
    return found


def _nothing(many: int, state_bytes: float) -> Speeds:
    import numpy as np

    return Speeds(
        seconds=np.full(many, np.inf), width=np.zeros(many), fits=np.zeros(many),
        peak_gb=np.zeros(many), samples_per_s=np.zeros(many), state_bytes=state_bytes,
        ways=[None] * many, why=[""] * many, kind_of_why=[""] * many, precision=[""] * many,
        stack=[""] * many, band=[""] * many, considered=0, second=[],
    )  # fmt: skip


def _with_more(found: Speeds, second: list[int]) -> Speeds:
    """With another entry for each of these groups, that is as the first one."""
    import numpy as np

    given: dict[str, Any] = {"second": [*found.second, *second]}
    for field in fields(Speeds):
        value = getattr(found, field.name)
        if isinstance(value, np.ndarray):
            given[field.name] = np.concatenate([value, value[second]])
        elif isinstance(value, list) and field.name != "second":
            given[field.name] = [*value, *(value[i] for i in second)]
    return replace(found, **given)


class _Asking:
    """The questions of a workload. What many groups have in common is asked once."""

    def __init__(
        self, train: Train, model: Model, most_nodes: int, through_xla: bool, coarse: float
    ) -> None:
        self.train, self.model, self.most_nodes = train, model, most_nodes
        self.through_xla, self.coarse = through_xla, coarse
        self.batch = train.sequences_per_step
        self._questions: dict[tuple[str, int], Question | InvalidValue] = {}
        self._columns: dict[tuple[str, int], dict[str, Any]] = {}
        self._ways: dict[tuple[int, int, int], list[Layout] | InvalidValue] = {}

    def question(self, group: Group) -> Question:
        found = self._of_machine(group)
        assert isinstance(found, Question)
        return found

    def ways(self, group: Group) -> list[Layout] | InvalidValue:
        known = self._of_machine(group)
        if isinstance(known, InvalidValue):
            return known
        key = (group.each, group.nodes, hardware.domain(group.accelerator, group.each))
        if key not in self._ways:
            try:
                question = replace(known, nodes=group.nodes)
                self._ways[key] = layouts.layouts(question, coarse=self.coarse)
            except InvalidValue as error:
                self._ways[key] = error
        return self._ways[key]

    def _of_machine(self, group: Group) -> Question | InvalidValue:
        """Asked of as many machines as are tried, so that what never can be is told apart."""
        key = (group.accelerator.name, group.each)
        if key not in self._questions:
            question = self._question(group)
            try:
                check(question)
                self._check_software(group.accelerator)
                self._questions[key] = question
            except InvalidValue as error:
                self._questions[key] = error
        return self._questions[key]

    def _check_software(self, chip: Accelerator) -> None:
        """Scripts for GPUs do not run on what trains through XLA, so that has to be said."""
        usual = stacks.usual(chip)
        if usual.startswith("xla") and not (self.train.stack or self.through_xla):
            raise InvalidValue(
                f"{chip.name} trains through XLA: name a stack that does (maxtext), or the "
                "accelerator in the limits"
            )

    def _question(self, group: Group) -> Question:
        train, precision = self.train, self.train.precision
        if precision == "bf16":  # the default: the nearest that the chip has
            precision = hardware.best_precision(group.accelerator)
        return Question(
            model=self.model,
            accelerator=group.accelerator,
            per_node=group.each,
            nodes=self.most_nodes,
            sequence=train.sequence,
            global_batch=self.batch,
            precision=precision,
            stack=train.stack,
            optimizer=train.optimizer,
            lora=train.lora or train.qlora,
            quantised=train.qlora is not None,
            flash=train.flash_attention,
            tp=train.tp,
            pp=train.pp,
            cp=train.cp,
            ep=train.ep,
            micro_batch=train.micro_batch,
            sharding=train.sharding,
            recompute=train.activation_checkpointing,
        )

    def cases(self, groups: list[Group], lists: list[list[Layout]], owner: Any) -> Cases:
        """All layouts of all groups: what a group decides is repeated for its layouts."""
        import numpy as np

        ones = [self._of(group) for group in groups]
        found: dict[str, Any] = {}
        for name, value in ones[0].items():
            values = [one[name] for one in ones]
            same = values.count(value) == len(values)
            found[name] = value if same else np.array(values)[owner]
        usual = np.broadcast_to(found["network"], len(owner))
        told = [group.network_gbps / group.each * 1e9 / 8 for group in groups]
        given = np.array(told)[owner]
        found["network"] = np.where(given > 0, given, usual)
        made: dict[int, dict[str, Any]] = {}
        for known in lists:
            if id(known) not in made:
                made[id(known)] = layouts.columns_of(known)
        for name in next(iter(made.values())):
            found[name] = np.concatenate([made[id(known)][name] for known in lists])
        return Cases.of(found)

    def _of(self, group: Group) -> dict[str, Any]:
        key = (group.accelerator.name, group.each)
        if key not in self._columns:
            self._columns[key] = answer.columns_of(self.question(group))
        return self._columns[key]


def _leaner_fits(cases: Cases, sure: Any, owner: Any) -> Any:
    """Whether the same layout with less recompute fits too.

    Layouts come in runs that differ in recompute alone, the least first.
    """
    import numpy as np

    less = np.zeros(len(owner), dtype=bool)
    same = (owner[1:] == owner[:-1]) & (cases.recompute[1:] > cases.recompute[:-1])
    for _ in range(2):
        less[1:] = same & (sure[:-1] | less[:-1])
    return less


def _best(values: Any, starts: Any, lengths: Any) -> Any:
    """Of each run the place of its largest value."""
    import numpy as np

    most = np.repeat(np.maximum.reduceat(values, starts), lengths)
    at = np.flatnonzero(values == most)
    run = np.repeat(np.arange(len(starts)), lengths)[at]
    _, first = np.unique(run, return_index=True)
    return at[first]


def _state_bytes(train: Train, model: Model) -> float:
    """What a checkpoint holds: trained weights, and their optimizer's state."""
    from tradewind.estimate import lora
    from tradewind.estimate.optimizers import state_bytes
    from tradewind.model.shape import Shape

    trained = float(columns.parameters(model))
    if (train.lora or train.qlora) and isinstance(model, Shape):
        trained *= min(lora.trained_share(model, train.lora or train.qlora or 1), 1.0)
    return trained * (2 + state_bytes(train.optimizer, weight_bytes=2.0))


def of_measured(
    work: Measured, base: Accelerator, groups: Sequence[Group], constants: Constants
) -> Speeds:
    """Work known by a measurement, carried to other chips by their peaks and bandwidths."""
    import numpy as np

    found = _nothing(len(groups), float(work.memory_bytes or base.memory_gb * 1e9) / 2 * work.count)
    needed = work.memory_bytes / GB if work.memory_bytes else hardware.capacity_gb(base)
    for i, group in enumerate(groups):
        chip, devices = group.accelerator, group.each * group.nodes
        found.precision[i], found.stack[i] = "as measured", "as measured"
        found.peak_gb[i] = needed
        try:
            hardware.check_precision(chip, hardware.best_precision(chip))
        except InvalidValue as error:
            found.why[i], found.kind_of_why[i] = error.message, "chip"
            continue
        if chip.vendor != base.vendor:
            found.why[i] = f"it was measured on {base.name}, and may not run on {chip.vendor}'s"
            found.kind_of_why[i] = "chip"
            continue
        if hardware.capacity_gb(chip) < needed * 0.999:
            short = needed - hardware.capacity_gb(chip)
            found.why[i] = (
                f"does not fit by {short:.0f} GB: it needs {needed:.0f} GB an accelerator"
            )
            found.kind_of_why[i] = "memory"
            continue
        if not work.scales and (devices < work.count or group.nodes > 1):
            found.why[i] = (
                f"it was measured on {work.count} and does not scale: it runs on one machine with "
                "at least as many"
            )
            found.kind_of_why[i] = "layout"
            continue
        slower = _slower(base, chip, constants)
        used = devices if work.scales else work.count
        spread = 0.97 ** float(np.log2(max(used / work.count, 1)))
        spread *= 0.9 ** float(np.log2(group.nodes))  # between machines
        found.seconds[i] = work.seconds * slower * work.count / used / spread
        found.fits[i] = 1.0
        same = chip.name == base.name and used == work.count
        found.width[i] = 0.05 if same else _MEASURED_BAND
        found.band[i] = (
            "it was measured on this" if same else f"carried over from {base.name} by peaks"
        )
        found.samples_per_s[i] = 1 / found.seconds[i]
    found.considered = len(groups)
    return found


def _slower(base: Accelerator, chip: Accelerator, constants: Constants) -> float:
    def rate(one: Accelerator) -> tuple[float, float]:
        known = hardware.columns(one, hardware.best_precision(one))
        efficiency = constants[f"efficiency16.{known['generation']}"]
        return known["peak16"] * efficiency, known["bandwidth"]

    (peak, bandwidth), (other_peak, other_bandwidth) = rate(base), rate(chip)
    return _COMPUTE * peak / other_peak + (1 - _COMPUTE) * bandwidth / other_bandwidth
