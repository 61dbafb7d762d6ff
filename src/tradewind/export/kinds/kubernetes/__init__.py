"""`kubernetes`: manifests in kustomize's layout, for plain clusters and those of vendors."""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.export import commented, engines, registry
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Setting
from tradewind.export.kinds.kubernetes import common, monitoring, service, training

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS = (
    Setting("labels", "Whose labels and taints nodes have.", ("plain", "gke", "eks", "aks")),
    Setting("image", "Of the job or the engine.", example="ghcr.io/me/job@sha256:…"),
    Setting("group", "Of a training on several nodes: an Indexed Job, or a JobSet.",
            ("job", "jobset")),
    Setting("queue", "A ClusterQueue of Kueue, through which a training waits.", example="gpus"),
    Setting("zone", "The zone of all nodes.", example="us-central1-a"),
    Setting("resource", "In place of whole accelerators: a MIG slice, or a share of time slices.",
            example="nvidia.com/mig-1g.10gb"),
    Setting("storage", "StorageClass of disks. Default: the cluster's own.", example="premium"),
    Setting("disks", "Of a service: one disk for all replicas, or one for each (a StatefulSet).",
            ("shared", "own")),
    Setting("scaler", "Of a service: a HorizontalPodAutoscaler, or a ScaledObject of KEDA.",
            ("hpa", "keda")),
    Setting("prometheus", "Where KEDA asks. Default: kube-prometheus's own address.",
            example="http://prometheus.monitoring.svc:9090"),
    Setting("metrics", "Whether NVIDIA's DCGM exporter runs on each GPU node.", ("no", "dcgm")),
    engines.MODEL,
)  # fmt: skip


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    names = common.Names.of(asked)
    if asked.serving is not None:
        found, notes = service.objects(asked, names, settings)
    else:
        found, notes = training.objects(asked, names, settings)
    if settings["metrics"] == "dcgm":
        found["metrics.yaml"] = [monitoring.exporter(names)]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(found),
        "labels": [{"pairs": {"app.kubernetes.io/name": names.name}}],
    }
    files = {path: File(commented.documents(objects)) for path, objects in found.items()}
    return Exported(
        {"kustomization.yaml": File(commented.text(kustomization)), **files},
        ("kubectl apply -k DIR --namespace NAMESPACE", *notes),
    )
