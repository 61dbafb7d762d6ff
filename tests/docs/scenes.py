"""What a page takes for granted: files, runs, a model. Its commands and its Python find them here.

`SHELL` goes before a page's commands, `PYTHON` before the block of that number; `SHORTER` makes of
thousands of steps some. Pages in `HEAVY` take long and are run by `make test-system`.
"""

from __future__ import annotations

HEAVY = {
    "docs/commands/get.md",
    "docs/commands/interrupt.md",
    "docs/commands/logs.md",
    "docs/commands/profile.md",
    "docs/commands/report.md",
    "docs/commands/resume.md",
    "docs/frameworks.md",
    "docs/from-skypilot.md",
    "docs/services.md",
    "docs/strategies.md",
    "examples/strategies/README.md",
}
RANKS = {"docs/strategies.md": 2}
COPIED = {"examples/strategies/README.md": "examples/strategies"}
"""Pages that are read in a folder of their own; trainings write there."""

ACCOUNT = """offers:
  - {name: box, provider: local, accelerator: 1xA100-80GB, on_demand: $1.20, spot: $0.40}
"""
"""A machine of one's own: its price never becomes stale, whenever the tests are run."""

TRACES = """\
trace_id,kind,provider,zone,accelerator,nodes,start_utc,gap_seconds,n_ticks,rle
a,availability,aws,us-east-2a,v100,1,2023-02-15T00:00:00Z,300,2400,1x400 0x50 1x900 0x100 1x950
"""
"""Two hundred hours of a zone."""


def _work(name: str, command: str) -> str:
    return f"""mkdir job && cd job
cat > work.yaml <<'END'
name: {name}
work: {{hours: 0.01, on: 1xA100-80GB}}
limits: {{deadline: 2h, budget: $20}}
run: {{command: "{command}"}}
END
"""


def _run(name: str, command: str, *options: str) -> str:
    return (
        _work(name, command) + " ".join(["tradewind run work.yaml --local --yes", *options]) + "\n"
    )


_SLOW_AT_FIRST = "test $TRADEWIND_LEG -gt 1 || sleep 600"
_UNTIL_UP = "until tradewind show count | grep -q 'is up'; do sleep 0.1; done\n"

SHELL = {
    "docs/commands/run.md": _work("count", "echo done"),
    "docs/commands/report.md": _run("tiny-gpt", "echo done"),
    "docs/commands/get.md": _run(
        "finetune", "mkdir out; echo w > out/best.pt; echo 1 > log.csv"
    ).replace('"}', '", outputs: [out, log.csv]}'),
    "docs/commands/logs.md": _run("count", "echo done"),
    "docs/commands/interrupt.md": _run("count", _SLOW_AT_FIRST, "--detach") + _UNTIL_UP,
    "docs/commands/resume.md": _run("count", _SLOW_AT_FIRST, "--detach")
    + _UNTIL_UP
    + "tradewind stop count\n",
    "docs/commands/sim.md": f"cat > traces.csv <<'END'\n{TRACES}END\n"
    "echo t_s,input_tokens,output_tokens > requests.csv\n"
    "seq 1 2000 | sed 's/$/,300,40/' >> requests.csv\n",
    "docs/commands/profile.md": 'cp "$REPOSITORY/tests/torch/models.py" models.py\n',
}
"""In the scratch folder of the page, before what it says."""

AFTER = {"docs/commands/interrupt.md": "tradewind stop count\n"}

_TORCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
torch.manual_seed(0)
dataset = TensorDataset(torch.randn(64, 8), torch.randn(64, 8))
"""

_TRAINING = (
    _TORCH
    + """
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
loader = DataLoader(dataset, batch_size=8, shuffle=True)

def compute(model, batch):
    inputs, targets = batch
    return ((model(inputs) - targets) ** 2).mean()

def evaluate(model):
    assert all(p.isfinite().all() for p in model.parameters())
"""
)

_SPREAD = (
    _TORCH
    + """
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.widen, self.narrow = nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x):
        return x + self.narrow(self.widen(x).relu())

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def loss_of(output, target):
    return ((output - target) ** 2).mean()

model = Model()
optimizer = torch.optim.AdamW(model.parameters())
layout = {"dp": 2}
"""
)

_FRAMEWORKS = (
    _TORCH
    + """
import pytorch_lightning as pl
from accelerate import Accelerator
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, inputs, labels=None):
        output = self.layer(inputs)
        return {"loss": ((output - labels) ** 2).mean(), "logits": output}

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def training_step(self, batch):
        return self.model(**batch)["loss"]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

def optimized():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 10)

train = [{"inputs": x, "labels": y} for x, y in dataset]
test, module = train[:8], Module()
loader = DataLoader(train, batch_size=8)
args = TrainingArguments(
    "out", num_train_epochs=1, save_strategy="no", eval_strategy="epoch", use_cpu=True,
    report_to=[], metric_for_best_model="loss",
)
accelerator = Accelerator(cpu=True)
model, optimizer, scheduler = optimized()
"""
)

_ELSEWHERE = """
import os
session.finish()
os.mkdir("other")
os.chdir("other")
loader = DataLoader(torch.zeros(16, 2, 8), batch_size=2)
"""

_SERVICE = """
import socket
from importlib import resources
from pathlib import Path

engine = resources.files("tradewind.demo.serving").joinpath("engine.py")
Path("engine.py").write_text(engine.read_text())
Path(".tradewindignore").write_text("examples\\nhome\\n")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
Path("chat.yaml").write_text(
    "name: chat\\nserve: {model: llama-3.1-8b, rate: 1/s, input: 200, output: 50, ttft: 1s}\\n"
    "run: {command: python engine.py $PORT}\\n"
    f"service: {{port: {port}, drain: 10s}}\\n"
)
"""
PYTHON = {
    "README.md": {1: _TRAINING},
    "docs/services.md": {1: _SERVICE},
    "docs/torch.md": {1: _TRAINING},
    "docs/scripts.md": {
        1: _TRAINING
        + """
class Model(torch.nn.Linear):
    def forward(self, x, y):
        return (super().forward(x) - y).square().mean()

def get_batch():
    return torch.randn(4, 8), torch.randn(4, 8)

def set_lr(optimizer, step):
    optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)

model = Model(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
        2: _ELSEWHERE + "session = tw.session(model=model, optimizer=optimizer, data=loader)\n",
        3: _ELSEWHERE + "labelled = unlabelled_loader = loader\n",
        4: _ELSEWHERE + "class envs:\n    observation = torch.zeros(2)\n    get_state = dict\n",
    },
    "docs/checkpoints.md": {
        1: _TRAINING + "tensors = dict(model.named_parameters())\nrank, world = 0, 1\n"
    },
    "docs/strategies.md": {1: _SPREAD, 2: _SPREAD},
    "docs/frameworks.md": {
        1: _FRAMEWORKS
        + "trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=test)\n"
        + "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n",
        2: "model = Model()\n",
        3: "loader = DataLoader(train, batch_size=8)\n",
        4: "import os\nos.mkdir('other')\nos.chdir('other')\n"  # its own training, its own folder
        "model, optimizer, scheduler = optimized()\n",
        5: "os.mkdir('averages')\nos.chdir('averages')\n"
        "unet, optimizer, _ = optimized()\nloader = DataLoader(train, batch_size=8)\n"
        "ema = torch.optim.swa_utils.AveragedModel(unet)\naverage = Model()\n"
        "unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)\n"
        "(maker, making, _), (critic, judging, _) = optimized(), optimized()\n"
        "images = accelerator.prepare(DataLoader(train, batch_size=8))\n"
        "trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=test)\n",
    },
    "docs/commands/profile.md": {
        1: "import sys\nsys.path.insert(0, REPOSITORY)\nfrom tests.torch.models import Llama\n"
    },
    "docs/local.md": {1: f"from pathlib import Path\nPath('traces.csv').write_text({TRACES!r})\n"},
    **{
        page: {
            1: "import shutil\n"
            "shutil.copy(REPOSITORY + '/examples/pretrain-1.3b/work.yaml', 'work.yaml')\n"
        }
        for page in ("docs/pictures.md", "docs/plan-page.md")
    },
}
"""page → number among its Python blocks → what stands before it."""

SHORTER = {
    "10_000": "20",
    "range(1, 100_001)": "range(1, 501)",
    "max_epochs=30": "max_epochs=1",
    "range(30)": "range(1)",
    'device="cuda"': 'device="cpu"',
}
