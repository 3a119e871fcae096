"""Can nodes be bought as the NodePools say: objects that are ready, subnets with room, quotas that are enough?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from joinery.objects.karpenter.labels import CAPACITY_TYPE
from joinery.objects.kubernetes import quantity
from joinery.objects.kubernetes.references import collection
from joinery_cli.doctor.findings import Check, Finding, fail, note, ok, warn
from joinery_cli.doctor.site import NoStackError, Site

_POOLS, _CLASSES = collection("NodePool"), collection("EC2NodeClass")
#: Service Quotas' codes of "Running On-Demand Standard instances" and "All Standard Spot Instance Requests", in vCPUs.
_QUOTAS = {"L-1216C47A": ("on-demand", "on-demand"), "L-34B43A08": ("spot", "spot")}
#: A subnet with fewer free addresses is soon full: a node takes as many as it has pods.
_FEW_ADDRESSES = 32
#: Concurrent executions that all functions of a stack take together, the webhook's apart.
_CONCURRENCY = 10


def objects(site: Site) -> Iterator[Finding]:
    """Whether NodePools and EC2NodeClasses are there and ready."""
    pools, classes = site.listed(_POOLS), site.listed(_CLASSES)
    if not pools:
        yield warn(
            "nodepools",
            "there is none, so no node is ever bought",
            "kubectl apply one, or deploy with StarterNodePool=true",
        )
        return
    if _observes(site) and not any(_ready(one) for one in (*pools, *classes)):
        yield note("nodepools", "whether they are ready is not written while Joinery observes: joinery plan shows it")
        return
    # In observe mode Joinery writes no status: what there is, Karpenter has written.
    says = ", says Karpenter: Joinery observes and writes no status" if _observes(site) else ""
    unready = [one for one in (*pools, *classes) if _ready(one).get("status") != "True"]
    for one in unready:
        why = _ready(one).get("message") or "it has no condition Ready: lifecycle has not looked at it yet"
        kind = one.get("kind") or ("NodePool" if one in pools else "EC2NodeClass")
        name = one["metadata"]["name"]
        yield fail("nodepools", f"{kind} {name} is not ready{says}: {why}", f"kubectl describe {kind.lower()} {name}")
    for one in pools:
        health = _condition(one, "NodeRegistrationHealthy")
        if health.get("status") == "False":
            name, why = one["metadata"]["name"], health.get("message", "")
            yield warn("nodepools", f"nodes of NodePool {name} do not join: {why}", f"kubectl describe nodepool {name}")
    if not unready:
        yield ok("nodepools", f"{len(pools)} NodePools and {len(classes)} EC2NodeClasses are ready{says}")


def _observes(site: Site) -> bool:
    """Whether the stack writes no status, because it observes (docs/operations.md, "What observe does")."""
    try:
        return site.parameters.get("Mode") == "observe"
    except NoStackError:
        return False


def _ready(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return _condition(one, "Ready")


def _condition(one: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions = one.get("status", {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def network(site: Site) -> Iterator[Finding]:
    """Whether each EC2NodeClass finds subnets that have room, and security groups, by its tags."""
    observes = _observes(site)
    for one in site.listed(_CLASSES):
        if observes and not _ready(one):
            continue
        name, status, spec = one["metadata"]["name"], one.get("status", {}), one.get("spec", {})
        for what, selected, terms in (
            ("subnets", status.get("subnets"), spec.get("subnetSelectorTerms")),
            ("security groups", status.get("securityGroups"), spec.get("securityGroupSelectorTerms")),
        ):
            if not selected:
                yield fail(
                    "network", f"EC2NodeClass {name} selects no {what} by {terms}", f"tag your {what}, or select others"
                )
        subnets = [subnet["id"] for subnet in status.get("subnets") or ()]
        if subnets:
            yield from _rooms(site, name, subnets)


def _rooms(site: Site, name: str, ids: Sequence[str]) -> Iterator[Finding]:
    described = site.aws.ask("ec2", "describe_subnets", SubnetIds=list(ids))["Subnets"]
    full = [one["SubnetId"] for one in described if one.get("AvailableIpAddressCount", _FEW_ADDRESSES) < _FEW_ADDRESSES]
    zones = {one["AvailabilityZone"] for one in described}
    if full:
        remedy = "add subnets, or let the VPC CNI use prefixes or another range"
        yield warn("network", f"fewer than {_FEW_ADDRESSES} addresses are free in {', '.join(full)}", remedy)
    if len(zones) < 2:
        yield warn("network", f"all subnets of {name} are in {', '.join(zones)}", "select subnets of other zones too")
    if not full and len(zones) > 1:
        yield ok("network", f"EC2NodeClass {name}: {len(described)} subnets in {len(zones)} zones have room")


def quotas(site: Site) -> Iterator[Finding]:
    """Whether EC2 lets the account run as many vCPUs as the NodePools may have."""
    pools = site.listed(_POOLS)
    for code, (capacity_type, words) in _QUOTAS.items():
        wanting = [pool for pool in pools if capacity_type in _capacity_types(pool)]
        if not wanting:
            continue
        answer = site.aws.ask("service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=code)
        most = float(answer["Quota"]["Value"])
        limits = [pool["spec"].get("limits", {}).get("cpu") for pool in wanting]
        cpus = sum(float(quantity.parse(limit)) for limit in limits if limit is not None)
        remedy = f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code}"
        if cpus > most:
            text = f"{words}: the NodePools may have {cpus:g} vCPUs, the account {most:g} (standard instances)"
            yield warn("quotas", text, f"{remedy} --desired-value {cpus:g}")
        elif None in limits:
            text = f"{words}: NodePools without limits may want more than the account's {most:g} vCPUs"
            yield warn("quotas", text, "set limits.cpu on every NodePool")
        else:
            yield ok("quotas", f"{words}: {cpus:g} vCPUs by limits, {most:g} by quota")


def _capacity_types(pool: Mapping[str, Any]) -> set[str]:
    """Those that a NodePool may buy; on-demand where it does not say (Karpenter NodePools, "Capacity Type")."""
    for requirement in pool["spec"]["template"]["spec"].get("requirements") or ():
        if requirement.get("key") == CAPACITY_TYPE and requirement.get("operator") == "In":
            return set(requirement.get("values") or ())
    return {"on-demand"}


def concurrency(site: Site) -> Iterator[Finding]:
    """Whether Lambda lets so many functions run at once."""
    limit = site.aws.ask("lambda", "get_account_settings")["AccountLimit"]
    free = limit.get("UnreservedConcurrentExecutions", 0)
    if free < _CONCURRENCY:
        remedy = "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384"
        yield warn("concurrency", f"only {free} executions at once are free", remedy)
    else:
        yield ok("concurrency", f"{free} executions at once are free of {limit.get('ConcurrentExecutions')}")


CHECKS = (
    Check("nodepools", objects),
    Check("network", network),
    Check("quotas", quotas),
    Check("concurrency", concurrency),
)
