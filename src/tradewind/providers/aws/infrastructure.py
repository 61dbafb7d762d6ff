"""A group of machines at AWS that runs a job and ends, with all it needs: network, bucket,
identity, budget. It stands alone: nothing here is of a store of ours."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.model import secrets
from tradewind.providers.infrastructure import (
    FileHash,
    Filled,
    Infrastructure,
    Json,
    Map,
    Of,
    Script,
    Thing,
    Var,
    Variable,
    Wanted,
)

_DRIVER = (
    "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
_BUCKET = Of("aws_s3_bucket.job", "id")
_TAGS = Map({"Name": Var("name")})
_VPC = {"vpc_id": Of("aws_vpc.job", "id")}
_CIDR = "10.78.0.0/20"
_READ = (secrets.AWS_SSM, secrets.AWS_SECRETS_MANAGER)

FUNCTIONS = """\
tools() { command -v aws > /dev/null || snap install aws-cli --classic; }
export AWS_DEFAULT_REGION="$REGION"
# It is run at the first boot alone: a machine that restarts would be idle, and paid for.
boot="${BOOT:-/var/lib/cloud/scripts/per-boot}"
[ ! -d "$boot" ] || [ "$0" -ef "$boot/job.sh" ] || install -m 700 "$0" "$boot/job.sh" || true
there() { aws s3api head-object --bucket "$BUCKET" --key "$1" > /dev/null 2>&1; }
fetch() { aws s3 cp --quiet "s3://$BUCKET/$1" -; }
# What is as large as ours may be another all the same: by default it would be left where it is.
pull() { aws s3 sync --quiet --exact-timestamps "s3://$BUCKET/$1" "$1"; }
push() { aws s3 sync --quiet "$1" "s3://$BUCKET/$1"; }
mark() { printf '%s\\n' "$2" | aws s3 cp --quiet - "s3://$BUCKET/$1"; }
about() { # of this machine: as EC2 tells it
  local token
  token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' \\
    http://169.254.169.254/latest/api/token) || return 1
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
noticed() { about spot/instance-action > /dev/null; } # two minutes before it is reclaimed
address() { about local-ipv4; }
members() { # addresses of all machines of the group
  local ids
  # shellcheck disable=SC2016 # its own quotes
  ids=$(aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$GROUP" \\
    --query 'AutoScalingGroups[0].Instances[?LifecycleState==`InService`].InstanceId' --output text)
  # shellcheck disable=SC2086 # an id each
  [ -z "$ids" ] || aws ec2 describe-instances --instance-ids $ids \\
    --query 'Reservations[].Instances[].PrivateIpAddress' --output text | tr '\\t' '\\n' | sort
}
end_group() { # nothing is paid any longer but for the bucket
  aws autoscaling set-desired-capacity --auto-scaling-group-name "$GROUP" --desired-capacity 0
}
"""
_SECRETS = {
    secrets.AWS_SSM: "aws ssm get-parameter --with-decryption --name {name}"
    " --query Parameter.Value --output text",
    secrets.AWS_SECRETS_MANAGER: "aws secretsmanager get-secret-value --secret-id {name}"
    " --query SecretString --output text",
}

CLASSES = {
    "aws_ssm_parameter": "ssm.get_parameter_output",
    "aws_vpc": "ec2.Vpc",
    "aws_subnet": "ec2.Subnet",
    "aws_internet_gateway": "ec2.InternetGateway",
    "aws_route_table": "ec2.RouteTable",
    "aws_route": "ec2.Route",
    "aws_route_table_association": "ec2.RouteTableAssociation",
    "aws_vpc_endpoint": "ec2.VpcEndpoint",
    "aws_security_group": "ec2.SecurityGroup",
    "aws_vpc_security_group_egress_rule": "vpc.SecurityGroupEgressRule",
    "aws_vpc_security_group_ingress_rule": "vpc.SecurityGroupIngressRule",
    "aws_s3_bucket": "s3.Bucket",
    "aws_s3_bucket_versioning": "s3.BucketVersioning",
    "aws_s3_bucket_server_side_encryption_configuration":
        "s3.BucketServerSideEncryptionConfiguration",
    "aws_s3_bucket_public_access_block": "s3.BucketPublicAccessBlock",
    "aws_s3_bucket_ownership_controls": "s3.BucketOwnershipControls",
    "aws_s3_bucket_lifecycle_configuration": "s3.BucketLifecycleConfiguration",
    "aws_s3_object": "s3.BucketObjectv2",
    "aws_iam_role": "iam.Role",
    "aws_iam_role_policy": "iam.RolePolicy",
    "aws_iam_instance_profile": "iam.InstanceProfile",
    "aws_launch_template": "ec2.LaunchTemplate",
    "aws_autoscaling_group": "autoscaling.Group",
    "aws_budgets_budget": "budgets.Budget",
}  # fmt: skip


def described(wanted: Wanted) -> Infrastructure:
    image = _image(wanted)
    if not wanted.zone:
        raise InvalidValue(
            f"the plan does not say in which zone of {wanted.region} its machines are",
            hint="kubernetes, which asks for no zone",
        )
    return Infrastructure(
        provider="aws",
        source="hashicorp/aws",
        version="~> 6.0",
        settings={"region": Var("region")},
        variables=(
            Variable(name="name", words="Of all that is made.", default=wanted.name),
            Variable(name="region", words="As planned.", default=wanted.region),
            Variable(name="zone", words="As planned, by its id, which is the same for everybody.",
                     default=wanted.zone),
            Variable(name="machine_type", words="As planned.", default=wanted.instance_type),
            Variable(name="machines", words="As planned; 0 ends them.", kind="number",
                     default=wanted.nodes),
            Variable(name="on_demand_percent", kind="number", default=0 if wanted.spot else 100,
                     words="Of the machines: 0 buys all on the spot market, 100 none."),
            Variable(name="disk_gb", words=wanted.disk_why, kind="number", default=wanted.disk_gb),
            Variable(name="image", default=image, words="A public parameter of SSM that names the"
                     " newest image with NVIDIA's driver; or one of your own."),
            Variable(name="job", words="The job's folder as an archive.", default="job.tar.gz"),
            Variable(name="budget", words=wanted.budget_why, default=str(wanted.budget)),
            Variable(name="alert_email",
                     words="Who is told when half, 80 % and all of the budget is spent."),
        ),
        things=(*_network(wanted), *_bucket(), *_identity(wanted), *_machines(wanted)),
        outputs={
            "bucket": (_BUCKET, "Where checkpoints, logs and the job's outputs are."),
            "group": (Of("aws_autoscaling_group.job", "name"), "The group of machines."),
        },
        functions=FUNCTIONS,
        classes=CLASSES,
        pulumi=("pulumi_aws", "7"),
        notes=(
            "the budget counts what bears the tag Name: activate it as a cost allocation tag in"
            " the billing console, once for each account",
            "a shell on a machine: aws ssm start-session --target INSTANCE; there is no other way"
            " in",
        ),
    )  # fmt: skip


def secret(reference: secrets.Reference) -> str:
    """A command that prints it, on a machine."""
    return _SECRETS[reference.scheme].format(name=f"'{reference.name}'")


def _image(wanted: Wanted) -> str:
    if wanted.vendor != "NVIDIA":
        raise InvalidValue(
            f"no image is known whose driver is for {wanted.chip}",
            hint="--accelerator with one of NVIDIA's",
        )
    for variable, text in wanted.secrets.items():
        if secrets.parse(text).scheme not in _READ:
            raise InvalidValue(
                f"machines at AWS cannot read {variable} ({text})",
                hint=f"keep it where they can: {variable}: aws-ssm:/path/name",
            )
    return _DRIVER.format(arch="arm64" if wanted.arm else "x86_64")


def _network(wanted: Wanted) -> list[Thing]:
    group = {"security_group_id": Of("aws_security_group.job", "id")}
    found = [
        Thing(kind="aws_vpc", name="job",
              fields={"cidr_block": _CIDR, "enable_dns_hostnames": True, "tags": _TAGS}),
        Thing(kind="aws_subnet", name="job", fields=_VPC | {
            "cidr_block": _CIDR, "availability_zone_id": Var("zone"),
            "map_public_ip_on_launch": True, "tags": _TAGS}),
        Thing(kind="aws_internet_gateway", name="job", fields=_VPC | {"tags": _TAGS}),
        Thing(kind="aws_route_table", name="job", fields=_VPC | {"tags": _TAGS}),
        Thing(kind="aws_route", name="out", fields={
            "route_table_id": Of("aws_route_table.job", "id"),
            "destination_cidr_block": "0.0.0.0/0",
            "gateway_id": Of("aws_internet_gateway.job", "id")}),
        Thing(kind="aws_route_table_association", name="job", fields={
            "subnet_id": Of("aws_subnet.job", "id"),
            "route_table_id": Of("aws_route_table.job", "id")}),
        Thing(kind="aws_vpc_endpoint", name="bucket",
              why="What goes to the bucket and comes from it stays inside, and costs nothing.",
              fields=_VPC | {
                  "service_name": Filled("com.amazonaws.%s.s3", (Var("region"),)),
                  "vpc_endpoint_type": "Gateway",
                  "route_table_ids": [Of("aws_route_table.job", "id")], "tags": _TAGS}),
        Thing(kind="aws_security_group", name="job",
              why="Nobody comes in" + (", but machines of the group." if wanted.nodes > 1
                                       else ": it has no rule for it."),
              fields=_VPC | {"name": Var("name"), "description": "Machines of a job",
                             "tags": _TAGS}),
        Thing(kind="aws_vpc_security_group_egress_rule", name="out",
              fields=group | {"ip_protocol": "-1", "cidr_ipv4": "0.0.0.0/0"}),
    ]  # fmt: skip
    if wanted.nodes > 1:
        among = {"ip_protocol": "-1",
                 "referenced_security_group_id": Of("aws_security_group.job", "id")}  # fmt: skip
        found.append(
            Thing(kind="aws_vpc_security_group_ingress_rule", name="among", fields=group | among)
        )
    return found


def _bucket() -> list[Thing]:
    of: dict[str, Any] = {"bucket": _BUCKET}
    return [
        Thing(kind="aws_s3_bucket", name="job",
              why="Checkpoints and outputs: it is not destroyed while there is something in it.",
              fields={"bucket_prefix": Filled("%s-", (Var("name"),)), "tags": _TAGS}),
        Thing(kind="aws_s3_bucket_versioning", name="job",
              fields=of | {"versioning_configuration": {"status": "Enabled"}}),
        Thing(kind="aws_s3_bucket_server_side_encryption_configuration", name="job",
              fields=of | {"rule": [{"apply_server_side_encryption_by_default":
                                     {"sse_algorithm": "AES256"}}]}),
        Thing(kind="aws_s3_bucket_public_access_block", name="job", fields=of | {
            "block_public_acls": True, "ignore_public_acls": True,
            "block_public_policy": True, "restrict_public_buckets": True}),
        Thing(kind="aws_s3_bucket_ownership_controls", name="job",
              fields=of | {"rule": {"object_ownership": "BucketOwnerEnforced"}}),
        Thing(kind="aws_s3_bucket_lifecycle_configuration", name="job",
              why="What was replaced goes after a week, uploads that were never finished too.",
              fields=of | {"rule": [{
                  "id": "replaced", "status": "Enabled", "filter": {"prefix": ""},
                  "noncurrent_version_expiration": {"noncurrent_days": 7},
                  "abort_incomplete_multipart_upload": {"days_after_initiation": 7}}]}),
        Thing(kind="aws_s3_object", name="job", fields=of | {
            "key": "job.tar.gz", "source": Var("job"), "source_hash": FileHash(Var("job"))}),
    ]  # fmt: skip


def _identity(wanted: Wanted) -> list[Thing]:
    role = Of("aws_iam_role.job", "name")
    bucket = Of("aws_s3_bucket.job", "arn")
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
                       "Principal": {"Service": "ec2.amazonaws.com"}}],
    }  # fmt: skip
    may: list[dict[str, Any]] = [
        _may("s3:ListBucket", bucket),
        {**_may("s3:GetObject", Filled("%s/*", (bucket,))),
         "Action": ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]},
        _may("autoscaling:SetDesiredCapacity",
             Filled("arn:aws:autoscaling:%s:*:autoScalingGroup:*:autoScalingGroupName/%s",
                    (Var("region"), Var("name")))),
    ]  # fmt: skip
    # A shell; the managed policy for it would read each parameter of the account, too.
    may.append(
        {
            **_may("ssm:UpdateInstanceInformation", "*"),
            "Action": [
                "ssm:UpdateInstanceInformation",
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
        }
    )
    if wanted.nodes > 1:
        may.append({**_may("autoscaling:DescribeAutoScalingGroups", "*"),
                    "Action": ["autoscaling:DescribeAutoScalingGroups",
                               "ec2:DescribeInstances"]})  # fmt: skip
    for text in wanted.secrets.values():
        may.append(_may_read(secrets.parse(text)))
    return [
        Thing(kind="aws_iam_role", name="job", why="What machines may: their bucket, their end"
              + (", each other's names" if wanted.nodes > 1 else "")
              + (", their secrets" if wanted.secrets else "") + ", and a shell by SSM.",
              fields={"name": Var("name"), "assume_role_policy": Json(trust), "tags": _TAGS}),
        Thing(kind="aws_iam_role_policy", name="job", fields={
            "name": "job", "role": role,
            "policy": Json({"Version": "2012-10-17", "Statement": may})}),
        Thing(kind="aws_iam_instance_profile", name="job",
              fields={"name": Var("name"), "role": role, "tags": _TAGS}),
    ]  # fmt: skip


def _may(action: str, resource: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": [action], "Resource": [resource]}


def _may_read(reference: secrets.Reference) -> dict[str, Any]:
    name = reference.name
    if reference.scheme == secrets.AWS_SSM:
        arn = name if name.startswith("arn:") else f"arn:aws:ssm:*:*:parameter/{name.lstrip('/')}"
        return _may("ssm:GetParameter", arn)
    # Secrets Manager adds six letters to a name.
    arn = name if name.startswith("arn:") else f"arn:aws:secretsmanager:*:*:secret:{name}-??????"
    return _may("secretsmanager:GetSecretValue", arn)


def _machines(wanted: Wanted) -> list[Thing]:
    tagged = {"key": "Name", "value": Var("name"), "propagate_at_launch": True}
    market = {
        "on_demand_base_capacity": 0,
        "on_demand_percentage_above_base_capacity": Var("on_demand_percent"),
        "spot_allocation_strategy": "price-capacity-optimized",
    }
    which = {"launch_template_id": Of("aws_launch_template.job", "id"), "version": "$Latest"}
    return [
        Thing(kind="aws_ssm_parameter", name="image", data=True, fields={"name": Var("image")}),
        Thing(kind="aws_launch_template", name="job", fields={
            "name_prefix": Filled("%s-", (Var("name"),)),
            "image_id": Of("data.aws_ssm_parameter.image", "insecure_value"),
            "instance_type": Var("machine_type"),
            "iam_instance_profile": {"arn": Of("aws_iam_instance_profile.job", "arn")},
            "metadata_options": {"http_endpoint": "enabled", "http_tokens": "required",
                                 "http_put_response_hop_limit": 1},
            "block_device_mappings": [{"device_name": "/dev/sda1", "ebs": {
                "volume_size": Var("disk_gb"), "volume_type": "gp3", "encrypted": "true",
                "delete_on_termination": "true"}}],
            "network_interfaces": [{"associate_public_ip_address": "true",
                                    "security_groups": [Of("aws_security_group.job", "id")]}],
            "tag_specifications": [{"resource_type": each, "tags": _TAGS}
                                   for each in ("instance", "volume")],
            "user_data": Script({"BUCKET": _BUCKET, "REGION": Var("region"), "GROUP": Var("name")},
                                encoded=True)}),
        Thing(kind="aws_autoscaling_group", name="job",
              why="What is taken is replaced, and resumes; the job's end sets it to none. A machine"
              " begins at once, and has to find all that it needs.",
              needs=("aws_s3_object.job", "aws_iam_role_policy.job", "aws_route.out",
                     "aws_route_table_association.job",
                     "aws_vpc_security_group_egress_rule.out",
                     *(("aws_vpc_security_group_ingress_rule.among",) if wanted.nodes > 1 else ())),
              fields={
                  "name": Var("name"), "min_size": 0, "max_size": Var("machines"),
                  "desired_capacity": Var("machines"), "wait_for_capacity_timeout": "0",
                  "vpc_zone_identifier": [Of("aws_subnet.job", "id")],
                  "mixed_instances_policy": {
                      "instances_distribution": market,
                      "launch_template": {"launch_template_specification": which}},
                  "tag": [tagged]}),
        Thing(kind="aws_budgets_budget", name="job",
              why="Of what was spent: forecasts need weeks of history, which a job has not.",
              fields={
            "name": Var("name"), "budget_type": "COST", "limit_amount": Var("budget"),
            "limit_unit": "USD", "time_unit": "MONTHLY",
            "cost_filter": [{"name": "TagKeyValue",
                             "values": [Filled("user:Name$%s", (Var("name"),))]}],
            "notification": [{
                "comparison_operator": "GREATER_THAN", "threshold": each,
                "threshold_type": "PERCENTAGE", "notification_type": "ACTUAL",
                "subscriber_email_addresses": [Var("alert_email")]}
                for each in (50, 80, 100)]}),
    ]  # fmt: skip
