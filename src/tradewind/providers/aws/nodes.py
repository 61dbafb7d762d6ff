"""A group of GPU nodes for a cluster of EKS: it follows what pods ask for, down to none."""

from __future__ import annotations

from tradewind.providers.infrastructure import (
    Filled,
    Infrastructure,
    Json,
    Map,
    Nodes,
    Of,
    Pool,
    Thing,
    Var,
    Variable,
)

FLAVOUR = "eks"
_GPU = ("nvidia.com/gpu", "present")
_POLICIES = {
    "node": "AmazonEKSWorkerNodePolicy",
    "images": "AmazonEC2ContainerRegistryPullOnly",
    "network": "AmazonEKS_CNI_Policy",
}
CLASSES = {
    "aws_iam_role": "iam.Role",
    "aws_iam_role_policy_attachment": "iam.RolePolicyAttachment",
    "aws_eks_node_group": "eks.NodeGroup",
}


def described(wanted: Nodes) -> Infrastructure:
    where = f"in its zone {wanted.zone}" if wanted.zone else f"in {wanted.region}"
    return Infrastructure(
        provider="aws",
        source="hashicorp/aws",
        version="~> 6.0",
        settings={"region": Var("region")},
        variables=(
            Variable(name="name", words="Of all that is made.", default=wanted.name),
            Variable(name="region", words="As planned; the cluster's.", default=wanted.region),
            Variable(name="cluster", words="Its name.", default=wanted.cluster),
            Variable(name="subnet", words=f"Of the cluster, {where}: the plan's machines are there."
                     " Its id."),
            Variable(name="disk_gb", words=wanted.disk_why, kind="number", default=wanted.disk_gb),
            *(Variable(name=f"most_{each.key}", words=each.why, kind="number", default=each.most)
              for each in wanted.pools),
        ),
        things=(*_identity(), *(_group(each) for each in wanted.pools)),
        outputs={"role": (Of("aws_iam_role.nodes", "arn"), "What nodes are.")},
        classes=CLASSES,
        pulumi=("pulumi_aws", "7"),
        notes=(
            "the image of the nodes has NVIDIA's driver; its device plugin, and an autoscaler"
            " (cluster-autoscaler finds the group by itself), have to be in the cluster",
        ),
    )  # fmt: skip


def _identity() -> list[Thing]:
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
                       "Principal": {"Service": "ec2.amazonaws.com"}}],
    }  # fmt: skip
    return [
        Thing(kind="aws_iam_role", name="nodes",
              why="What EKS wants nodes to be allowed: to join, to fetch images, addresses.",
              fields={"name": Filled("%s-nodes", (Var("name"),)),
                      "assume_role_policy": Json(trust)}),
        *(Thing(kind="aws_iam_role_policy_attachment", name=name, fields={
            "role": Of("aws_iam_role.nodes", "name"),
            "policy_arn": f"arn:aws:iam::aws:policy/{policy}"})
          for name, policy in _POLICIES.items()),
    ]  # fmt: skip


def _group(pool: Pool) -> Thing:
    return Thing(
        kind="aws_eks_node_group",
        name=pool.key,
        why=f"{pool.count} × {pool.chip} in each; without pods that ask for them there are none."
        " How many there are is the autoscaler's.",
        needs=tuple(f"aws_iam_role_policy_attachment.{name}" for name in _POLICIES),
        leaves=("scaling_config.desired_size",),
        fields={
            "cluster_name": Var("cluster"),
            "node_group_name": pool.name,
            "node_role_arn": Of("aws_iam_role.nodes", "arn"),
            "subnet_ids": [Var("subnet")],
            "capacity_type": "SPOT" if pool.spot else "ON_DEMAND",
            "instance_types": [pool.instance_type],
            "ami_type": f"AL2023_{'ARM_64' if pool.arm else 'x86_64'}_NVIDIA",
            "disk_size": Var("disk_gb"),
            "labels": Map(pool.labels),
            "taint": [
                {"key": key, "value": value, "effect": "NO_SCHEDULE"}
                for key, value in (_GPU, *pool.taints)
            ],
            "scaling_config": {
                "desired_size": 0, "min_size": 0, "max_size": Var(f"most_{pool.key}"),
            },
        },
    )  # fmt: skip
