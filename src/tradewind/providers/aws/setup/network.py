"""Where machines are in a region: a security group in the default VPC, or in a VPC of their own."""

from __future__ import annotations

from functools import partial
from typing import Any

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.providers.aws.footprint import OWNER, Network, owned, tag_list, tags_of
from tradewind.providers.aws.setup.calls import Calls
from tradewind.providers.aws.setup.things import Group, Private, Region
from tradewind.providers.changes import Line

_YOUNG = ("InvalidVpcID.NotFound", "InvalidSubnetID.NotFound", "InvalidRouteTableID.NotFound",
          "InvalidRouteTableId.NotFound", "InvalidGroup.NotFound")  # fmt: skip
_ALL = "-1"


class Place:
    """A region as it is looked at; ids of what is made later are filled in then."""

    def __init__(self, calls: Calls, wanted: Region, store_url: str) -> None:
        self._calls, self._wanted, self._url = calls, wanted, store_url
        self.vpc = self.group = self.routes = ""
        self.subnets: dict[str, str] = {}

    def network(self) -> Network:
        return Network(
            vpc=self.vpc,
            security_group=self.group,
            subnets=dict(sorted(self.subnets.items())),
            public=self._wanted.private is None,
        )

    def look(self) -> list[Line]:
        if self._wanted.private is None:
            return [self._default(), self._group(self._wanted.group)]
        lines = self._own(self._wanted.private)
        return [*lines, self._group(self._wanted.group)]

    def call(self, method: str, **parameters: Any) -> Any:
        again = () if method.startswith("describe") else _YOUNG
        return self._calls("ec2", self._wanted.region, method, again=again, **parameters)

    def _line(self, what: str, name: str, there: bool) -> Line:
        return Line(what, name, self._wanted.region, there)

    def _tagged(self, kind: str, tags: dict[str, str]) -> dict[str, Any]:
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)}]}

    # The default VPC

    def _default(self) -> Line:
        wanted = [{"Name": "is-default", "Values": ["true"]}]
        found = self.call("describe_vpcs", Filters=wanted)["Vpcs"]
        if not found:
            region = self._wanted.region
            raise NotFound(
                f"{region} has no default VPC in this account",
                hint=f"--private makes a network of its own; or `aws ec2 create-default-vpc"
                f" --region {region}`",
            )
        self.vpc = found[0]["VpcId"]
        inside = [
            {"Name": "vpc-id", "Values": [self.vpc]},
            {"Name": "default-for-az", "Values": ["true"]},
        ]
        for subnet in self.call("describe_subnets", Filters=inside)["Subnets"]:
            self.subnets[subnet["AvailabilityZoneId"]] = subnet["SubnetId"]
        if not self.subnets:
            raise NotFound(
                f"the default VPC of {self._wanted.region} has no default subnet",
                hint="--private makes a network of its own; or `aws ec2 create-default-subnet`",
            )
        line = self._line("network", self.vpc, True)
        line.remark = "the default VPC: " + ", ".join(sorted(self.subnets))
        return line

    # A VPC of its own

    def _own(self, wanted: Private) -> list[Line]:
        found = self.call("describe_vpcs", Filters=owned(self._url))["Vpcs"]
        self.vpc = min((vpc["VpcId"] for vpc in found), default="")
        line = self._line("vpc", self.vpc or wanted.cidr, bool(self.vpc))
        if not self.vpc:
            line.add("make it, with no way out but to S3", lambda: self._make_vpc(wanted))
        routes, joined = self._routes(wanted)
        return [line, routes, *self._subnets(wanted, joined), self._endpoint(wanted)]

    def _inside(self) -> list[dict[str, Any]]:
        return [{"Name": "vpc-id", "Values": [self.vpc]}, *owned(self._url)]

    def _make_vpc(self, wanted: Private) -> None:
        tagged = self._tagged("vpc", wanted.tags)
        self.vpc = self.call("create_vpc", CidrBlock=wanted.cidr, **tagged)["Vpc"]["VpcId"]

    def _routes(self, wanted: Private) -> tuple[Line, set[str]]:
        """And the subnets that it serves."""
        found = self._listed("describe_route_tables", "RouteTables")
        table = min(found, key=lambda each: str(each["RouteTableId"]), default=None)
        self.routes = table["RouteTableId"] if table else ""
        line = self._line("route table", self.routes or wanted.tags["Name"], bool(table))
        if not table:
            line.add("make it", lambda: self._make_routes(wanted))
        joined = {each.get("SubnetId", "") for each in (table or {}).get("Associations", [])}
        return line, joined

    def _listed(self, method: str, key: str) -> list[dict[str, Any]]:
        """Ours in our VPC; none if that is still to be made."""
        return list(self.call(method, Filters=self._inside())[key]) if self.vpc else []

    def _make_routes(self, wanted: Private) -> None:
        tagged = self._tagged("route-table", wanted.tags)
        made = self.call("create_route_table", VpcId=self.vpc, **tagged)
        self.routes = made["RouteTable"]["RouteTableId"]

    def _subnets(self, wanted: Private, joined: set[str]) -> list[Line]:
        found = self._listed("describe_subnets", "Subnets")
        self.subnets = {each["AvailabilityZoneId"]: each["SubnetId"] for each in found}
        taken = {each["CidrBlock"] for each in found}
        free = iter([cidr for cidr in wanted.subnets if cidr not in taken])
        usual = [
            {"Name": "zone-type", "Values": ["availability-zone"]},
            {"Name": "state", "Values": ["available"]},
        ]
        zones = self.call("describe_availability_zones", Filters=usual)["AvailabilityZones"]
        lines = []
        for zone in sorted(each["ZoneId"] for each in zones):
            known = self.subnets.get(zone, "")
            line = self._line("subnet", known or zone, bool(known))
            if not known:
                cidr = next(free)
                line.add("make it", partial(self._make_subnet, wanted, zone, cidr))
            if known not in joined or not known:
                line.add("uses the route table", partial(self._join, zone))
            lines.append(line)
        return lines

    def _make_subnet(self, wanted: Private, zone: str, cidr: str) -> None:
        made = self.call(
            "create_subnet", VpcId=self.vpc, CidrBlock=cidr, AvailabilityZoneId=zone,
            **self._tagged("subnet", wanted.tags),
        )  # fmt: skip
        self.subnets[zone] = made["Subnet"]["SubnetId"]

    def _join(self, zone: str) -> None:
        self.call(
            "associate_route_table", RouteTableId=self.routes, SubnetId=self.subnets[zone],
            fine=("Resource.AlreadyAssociated",),
        )  # fmt: skip

    def _endpoint(self, wanted: Private) -> Line:
        found = self._listed("describe_vpc_endpoints", "VpcEndpoints")
        gone = ("deleted", "deleting")
        found = [each for each in found if each.get("State") not in gone]
        found = [each for each in found if each["ServiceName"] == wanted.endpoint]
        line = self._line("endpoint", wanted.endpoint, bool(found))
        if not found:
            line.add("make it, free of charge", lambda: self._make_endpoint(wanted))
        elif self.routes not in found[0].get("RouteTableIds", []):
            given = found[0]["VpcEndpointId"]
            line.add(
                "in the route table",
                lambda: self.call(
                    "modify_vpc_endpoint", VpcEndpointId=given, AddRouteTableIds=[self.routes]
                ),
            )
        return line

    def _make_endpoint(self, wanted: Private) -> None:
        self.call(
            "create_vpc_endpoint", VpcId=self.vpc, ServiceName=wanted.endpoint,
            VpcEndpointType="Gateway", RouteTableIds=[self.routes],
            **self._tagged("vpc-endpoint", wanted.tags),
        )  # fmt: skip

    # The security group

    def _find_group(self, wanted: Group) -> dict[str, Any] | None:
        here = [
            {"Name": "vpc-id", "Values": [self.vpc]},
            {"Name": "group-name", "Values": [wanted.name]},
        ]
        found = self.call("describe_security_groups", Filters=here)["SecurityGroups"]
        return found[0] if found else None

    def _group(self, wanted: Group) -> Line:
        found = self._find_group(wanted) if self.vpc else None
        line = self._line("security group", wanted.name, found is not None)
        if found is None:
            line.add("make it", lambda: self._make_group(wanted))
        else:
            self._check_ours(found, wanted)
            self.group = found["GroupId"]
        inbound = (found or {}).get("IpPermissions", [])
        outbound = (found or {}).get("IpPermissionsEgress", [])
        # A new group has none of the first, and the second.
        itself = self._from_itself(inbound)
        if itself:
            line.add("no longer inbound from itself", lambda: self._close(itself))
        if found is not None and not _to_world(outbound, wanted.world):
            line.add("outbound to the world", lambda: self._open(wanted.world))
        if len(itself) < len(inbound):
            line.remark = "lets others in too: rules added by hand, which are left"
        return line

    def _check_ours(self, found: dict[str, Any], wanted: Group) -> None:
        """A tag makes it ours to change and delete, so nothing that is there already gets one."""
        tags = tags_of(found.get("Tags"))
        if any(tags.get(key) != value for key, value in wanted.tags.items()):
            region = self._wanted.region
            raise InvalidValue(
                f"the security group {found['GroupId']} in {region} has the name {wanted.name}, and"
                f" not the tag {OWNER}={self._url}",
                hint="if it is yours to give, delete it (`aws ec2 delete-security-group --region"
                f" {region} --group-id {found['GroupId']}`), or put the tag back on it",
            )

    def _make_group(self, wanted: Group) -> None:
        made = self.call(
            "create_security_group", GroupName=wanted.name, Description=wanted.description,
            VpcId=self.vpc, fine=("InvalidGroup.Duplicate",),
            **self._tagged("security-group", wanted.tags),
        )  # fmt: skip
        self.group = (made or self._find_group(wanted) or {}).get("GroupId", "")

    def _from_itself(self, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As groups of earlier versions have it, by which every run reached every other."""
        return [rule for rule in rules if rule["IpProtocol"] == _ALL and self._only_itself(rule)]

    def _only_itself(self, rule: dict[str, Any]) -> bool:
        ranges = any(rule.get(key) for key in ("IpRanges", "Ipv6Ranges", "PrefixListIds"))
        pairs = rule.get("UserIdGroupPairs", [])
        return not ranges and all(pair.get("GroupId") == self.group for pair in pairs)

    def _close(self, rules: list[dict[str, Any]]) -> None:
        self.call(
            "revoke_security_group_ingress", GroupId=self.group, IpPermissions=rules,
            fine=("InvalidPermission.NotFound",),
        )  # fmt: skip

    def _open(self, world: str) -> None:
        self.call(
            "authorize_security_group_egress", GroupId=self.group,
            IpPermissions=[{"IpProtocol": _ALL, "IpRanges": [{"CidrIp": world}]}],
            fine=("InvalidPermission.Duplicate",),
        )  # fmt: skip


def _to_world(rules: list[dict[str, Any]], world: str) -> bool:
    ranges = [r for rule in rules if rule["IpProtocol"] == _ALL for r in rule.get("IpRanges", [])]
    return any(each.get("CidrIp") == world for each in ranges)
