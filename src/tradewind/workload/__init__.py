"""Workloads as people write them: a YAML file, flags, or plain data, all to one `Workload`.

from tradewind import workload

workload.load("work.yaml").total_tokens
workload.of({"train": {"model": "llama-3.1-8b", "tokens": "10B", …}})
"""

from tradewind.model.workload import Workload
from tradewind.workload.files import known_names, load
from tradewind.workload.known import Known
from tradewind.workload.reader import of, read

__all__ = ["Known", "Workload", "known_names", "load", "of", "read"]
