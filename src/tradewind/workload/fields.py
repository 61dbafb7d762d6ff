"""Every field of a workload file, described once.

The reader, the JSON Schema, and the tables of docs/workload.md are all made from `SECTIONS`, so a
field is added here, with its attribute in `model.workload`, and nowhere else.
"""

from __future__ import annotations

from tradewind.model.job import ON_IDLE, Job
from tradewind.model.limits import COMMITMENTS, Limits
from tradewind.model.machines import Machines
from tradewind.model.offer import MARKETS
from tradewind.model.train import OPTIMIZERS, PRECISIONS, RECOMPUTES, SHARDINGS, STACKS, Train
from tradewind.model.workload import Checkpoint, Data, Measured
from tradewind.workload import kinds
from tradewind.workload.sections import MODEL, Field, Section
from tradewind.workload.serve_fields import SERVE, SERVICE

_DEGREE = kinds.counted()
_CHOSEN = "the best"

TRAIN = Section(
    "train",
    Train,
    "A model, and how much training",
    (
        Field(
            "model",
            MODEL,
            "a known name, a Hugging Face `config.json`, a profile from `tradewind profile`, or a "
            "shape (a path, or its fields here)",
            "llama-3.1-8b",
        ),
        Field("tokens", kinds.counted("tokens"), "tokens to train on, all together", "10B"),
        Field("samples", kinds.counted("samples"), "or samples (sequences, images)", "450k"),
        Field("epochs", kinds.NUMBER, "or passes over `dataset`", "90"),
        Field("steps", kinds.counted("steps"), "or optimizer steps", "20,000"),
        Field(
            "dataset",
            kinds.SAMPLES_OR_TOKENS,
            "size of the dataset, for `epochs`",
            "1.28M samples",
            ("dataset_samples", "dataset_tokens"),
        ),
        Field(
            "sequence",
            kinds.counted("tokens"),
            "tokens in a sequence; left out for models that have none",
            "8192",
        ),
        Field(
            "global_batch",
            kinds.SAMPLES_OR_TOKENS,
            "in an optimizer step: samples, or tokens, which are rounded to whole sequences",
            "4M tokens",
            ("global_batch", "global_batch_tokens"),
        ),
        Field(
            "precision",
            kinds.one_of(PRECISIONS),
            "of the matrix work; pure-bf16: of all of it",
            "bf16",
            (),
            "bf16",
        ),
        Field(
            "stack",
            kinds.one_of(STACKS, {"fsdp-compiled": "fsdp-compile", "fsdp": "fsdp-eager"}),
            "the software that trains",
            "fsdp-compiled",
            (),
            "the estimate's own",
        ),
        Field("optimizer", kinds.one_of(OPTIMIZERS), "the optimizer", "adamw", (), "adamw"),
        Field("lora", kinds.counted(), "rank of LoRA adapters on frozen weights", "16"),
        Field("qlora", kinds.counted(), "the same, on weights of 4 bits", "16"),
        Field("micro_batch", kinds.counted(), "samples at once on a device", "2", (), _CHOSEN),
        Field(
            "activation_checkpointing",
            kinds.one_of(RECOMPUTES, {"true": "full", "false": "none"}),
            "what is computed again instead of kept",
            "selective",
            (),
            _CHOSEN,
        ),
        Field(
            "sharding",
            kinds.one_of(SHARDINGS, {"fsdp": "zero3", "ddp": "none"}),
            "what data-parallel ranks share out",
            "zero3",
            (),
            _CHOSEN,
        ),
        Field("tp", _DEGREE, "tensor-parallel degree", "4", (), _CHOSEN),
        Field("pp", _DEGREE, "pipeline-parallel degree", "2", (), _CHOSEN),
        Field("cp", _DEGREE, "context-parallel degree", "2", (), _CHOSEN),
        Field("ep", _DEGREE, "expert-parallel degree", "8", (), _CHOSEN),
        Field("flash_attention", kinds.FLAG, "whether attention is fused", "true", (), "true"),
        Field(
            "measured",
            kinds.PATH,
            "your own measurements, a CSV, which sharpen the estimate",
            "measured.csv",
        ),
    ),
    ("model", "global_batch"),
    {
        "anyOf": [{"required": [name]} for name in ("tokens", "samples", "epochs", "steps")],
        "dependentRequired": {
            "epochs": ["dataset"],
            "dataset": ["epochs"],
            "tokens": ["sequence"],
        },
        "not": {"required": ["lora", "qlora"]},
    },
)

WORK = Section(
    "work",
    Measured,
    "Work known by measurement, in place of `train`",
    (
        Field(
            "on", kinds.HARDWARE, "what it was measured on", "8xA100-80GB", ("accelerator", "count")
        ),
        Field("hours", kinds.NUMBER, "how long it takes there", "12"),
        Field("step", kinds.INTERVAL, "or the time of one step", "1.8s", ("step_s",)),
        Field("steps", kinds.counted("steps"), "and how many there are", "20,000"),
        Field(
            "memory",
            kinds.SIZE,
            "what each accelerator needs",
            "30GB",
            ("memory_bytes",),
            "all that it was measured on has",
        ),
        Field("scales", kinds.FLAG, "whether more accelerators help", "true", (), "false"),
    ),
    ("on",),
    {
        "oneOf": [{"required": ["hours"]}, {"required": ["step", "steps"]}],
        "not": {
            "anyOf": [{"required": ["hours", "step"]}, {"required": ["hours", "steps"]}],
        },
    },
)

MACHINES = Section(
    "machines",
    Machines,
    "Machines that are named: exactly these, for a command that takes as long as it takes",
    (
        Field(
            "gpus",
            kinds.GPUS,
            "accelerators of each machine: exactly so many; of a family (`H100`) whichever kind is"
            " cheapest",
            "H100:8",
            ("gpus", "count"),
        ),
        Field("nodes", kinds.counted("nodes"), "how many machines", "2", (), "1"),
        Field("type", kinds.TEXT, "exactly this instance type", "p5.48xlarge"),
        Field("cpus", kinds.counted("cpus"), "at least so many vCPUs in each", "8"),
        Field("ram", kinds.SIZE, "at least so much memory in each", "32GB", ("ram_bytes",)),
        Field(
            "disk",
            kinds.SIZE,
            "at least so much disk for each, where it is bought with the machine",
            "200GB",
            ("disk_bytes",),
            "what the image and the checkpoints need",
        ),
    ),
    flat=True,
)

DATA = Section(
    "data",
    Data,
    "What the work reads, and where it lies",
    (
        Field("uri", kinds.URI, "where", "s3://acme-tokens/v3"),
        Field("size", kinds.SIZE, "how much", "40GB", ("size_bytes",)),
        Field(
            "region",
            kinds.PLACE,
            "in which region; the provider may be left out before it if the address tells",
            "aws/eu-west-1",
            ("provider", "region"),
        ),
    ),
    ("uri",),
)

CHECKPOINT = Section(
    "checkpoint",
    Checkpoint,
    "How often state is saved",
    (
        Field(
            "every",
            kinds.EVERY,
            "`auto`: as often as interruptions make it worth while",
            "30m",
            ("every_s",),
            "auto",
        ),
        Field("keep", kinds.counted(), "how many are kept", "3", (), "3"),
        Field(
            "size",
            kinds.SIZE,
            "of one checkpoint; for measured work, whose model is not known",
            "96GB",
            ("size_bytes",),
            "from the model",
        ),
    ),
)

LIMITS = Section(
    "limits",
    Limits,
    "What a plan must keep to; what is left out is not limited",
    (
        Field(
            "deadline",
            kinds.DEADLINE,
            "when it must be done: a duration after the start, or a time",
            "48h",
            ("deadline", "within_s"),
        ),
        Field(
            "hard",
            kinds.FLAG,
            "past the deadline the work is worth nothing: the run stops then",
            "true",
            (),
            "false: it continues, and is marked late",
        ),
        Field(
            "late",
            kinds.MONEY_HOUR,
            "what an hour past the deadline costs you, once it is lost: faster machines may pay",
            "$20/h",
            (),
            "nothing: it is then finished for the least money",
        ),
        Field(
            "confidence",
            kinds.SHARE,
            "wanted chance of keeping deadline and budget; for `serve`, of machines as planned",
            "95%",
            (),
            "90%; for `serve` 80%",
        ),
        Field("budget", kinds.MONEY, "what it may cost, everything counted", "$2,000"),
        Field(
            "providers", kinds.list_of(kinds.PROVIDER), "only these; globs", "[aws, gcp, lambda]"
        ),
        Field(
            "exclude",
            kinds.list_of(kinds.EXCLUDED),
            "not these providers or regions, whatever else is allowed",
            "[vast, aws/eu-west-2]",
        ),
        Field(
            "regions",
            kinds.list_of(kinds.REGION),
            "only these: `EU`, `US`, `Asia` or a country (`DE`) are all regions there, whatever "
            "they are called; `eu-*` of anyone, or `aws/eu-west-1`. Data residency",
            "[EU, aws/eu-west-2]",
        ),
        Field(
            "markets",
            kinds.list_of(kinds.one_of(MARKETS)),
            "how machines may be bought",
            "[spot, on_demand]",
            (),
            "all that needs no new commitment",
        ),
        Field(
            "accelerators",
            kinds.list_of(kinds.ACCELERATOR),
            "only these; any spelling, a family, or globs",
            "[H100*, A100-80GB]",
        ),
        Field("max_nodes", kinds.counted("nodes"), "most machines at once", "16"),
        Field(
            "max_accelerators",
            kinds.counted("accelerators"),
            "most accelerators at once, of all machines together",
            "64",
        ),
        Field(
            "commit",
            kinds.one_of(COMMITMENTS),
            "prices that ask for a new commitment of a year, or up to three, compete too",
            "1y",
            (),
            "only what is paid by the hour",
        ),
        Field(
            "assume_capacity",
            kinds.list_of(kinds.TEXT),
            "how likely machines are available: of all, a provider, a place or a type; globs",
            "[90%, p5.48xlarge=50%]",
            (),
            "what was seen of late, else our priors",
        ),
        Field(
            "carbon",
            kinds.TEXT,
            "the most CO2e that may be emitted, or what a tonne of it costs in the ranking",
            "50kg",
            (),
            "plans are not ranked by it",
        ),
    ),
)

RUN = Section(
    "run",
    Job,
    "What runs on the machines",
    (
        Field("command", kinds.SCRIPT, "the work itself, on every machine", "torchrun train.py"),
        Field(
            "setup",
            kinds.SCRIPT,
            "before it, once on every machine",
            "pip install -r requirements.txt",
        ),
        Field(
            "setup_time",
            kinds.DURATION,
            "from a booted machine to the first step",
            "5m",
            ("setup_s",),
            "the provider's usual",
        ),
        Field(
            "env",
            kinds.VARIABLES,
            "variables of setup and command; all who may read the store can read them",
            "{NCCL_DEBUG: INFO}",
            (),
            "none",
        ),
        Field(
            "secrets",
            kinds.SECRETS,
            "more variables, whose values the machine looks up (below)",
            "{HF_TOKEN: aws-ssm:/tradewind/hf-token}",
            (),
            "none",
        ),
        Field(
            "not_secret",
            kinds.list_of(kinds.TEXT),
            "names in `env` (or `command`, `setup`) that look like a secret and are none",
            "[SAMPLE_KEY]",
        ),
        Field(
            "outputs",
            kinds.list_of(kinds.TEXT),
            "files that the job writes, brought into the store for `tradewind get`; globs from the "
            "job's folder",
            "[out/*.pt, log.csv]",
        ),
        Field(
            "include",
            kinds.list_of(kinds.TEXT),
            "files that are sent with the job though an ignore file names them; globs from the "
            "job's folder",
            "[data/*.bin]",
        ),
        Field(
            "image",
            kinds.TEXT,
            "container image that it runs in, on clouds whose machines are containers (Kubernetes,"
            " Slurm with pyxis or Apptainer); others refuse it",
            "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
            (),
            "what was set up, or one that suits the accelerator",
        ),
        Field(
            "max_duration",
            kinds.DURATION,
            "how long its machines may be up, one after another; then it saves and stops",
            "12h",
            ("max_duration_s",),
            "no limit but the budget; with `gpus`, `type` or `cpus`: until the deadline, else 24h",
        ),
        Field(
            "idle",
            kinds.DURATION,
            "a job is idle that makes no step and uses no GPU (or CPU) for this long",
            "20m",
            ("idle_s",),
            "30m",
        ),
        Field(
            "on_idle",
            kinds.one_of(ON_IDLE),
            "what happens then; `stop` saves and ends the run",
            "stop",
            (),
            "report; with `gpus`, `type` or `cpus`: stop",
        ),
        Field(
            "retries",
            kinds.RETRIES,
            "how often a job that fails by itself is started again without having got further;"
            " interruptions and broken machines do not count",
            "0",
            (),
            "2",
        ),
        Field(
            "retry_on",
            kinds.list_of(kinds.TEXT),
            "only these failures are worth a retry: exit codes and signals",
            "[75, SIGSEGV]",
            (),
            "all but those that would be the same again: no such command or module, a syntax error",
        ),
    ),
    ("command",),
)

NAME = Field("name", kinds.NAME, "what the run is called", "support-bot-8b", (), "workload")
SECTIONS = (TRAIN, WORK, SERVE, MACHINES, DATA, CHECKPOINT, LIMITS, RUN, SERVICE)
