"""Can they reach each other: this command the cluster, the functions the cluster, the cluster the webhook?

Functions in a VPC reach some services, and do without the internet by VPC endpoints. Their names are those of
PrivateLink: ``com.amazonaws.REGION.NAME``, of interfaces in China ``cn.com.amazonaws.REGION.NAME``. Logs need none,
because Lambda delivers them itself; nor does STS, because the cluster asks it who we are, and not we.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from joinery.decisions.installation.objects import LEAST_KUBERNETES, WEBHOOK
from joinery.objects.errors import JoineryError, NotFoundError, UnavailableError
from joinery_cli.doctor.findings import Check, Finding, fail, note, ok, warn
from joinery_cli.doctor.site import OutOfReachError, Site, metric_sum

#: An EKS token is good for fifteen minutes, and a signed request for five: much less is worth a line.
_SKEW = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class VpcEndpoint:
    """``name``: the service in the endpoint's name. ``is_gateway``: a route, which costs nothing; else an interface.
    ``what_for``: which part of Joinery is at a standstill without it. ``only_if``: what it takes for it to be needed;
    empty for one that always is.
    """

    name: str
    what_for: str
    is_gateway: bool = False
    only_if: str = ""

    def service(self, region: str) -> str:
        """The service's name in a region, as DescribeVpcEndpoints has it."""
        prefix = "cn." if region.startswith("cn-") and not self.is_gateway else ""
        return f"{prefix}com.amazonaws.{region}.{self.name}"


ENDPOINTS: Sequence[VpcEndpoint] = (
    VpcEndpoint("eks", "finding the cluster; the installer's access to it"),
    VpcEndpoint("sqs", "ringing bells"),
    VpcEndpoint("ec2", "launching and ending instances, the catalogue"),
    VpcEndpoint("s3", "the catalogue, decision records, answers to CloudFormation", is_gateway=True),
    VpcEndpoint("dynamodb", "remembering what EC2 was out of", is_gateway=True),
    VpcEndpoint("ssm", "AMIs by alias", only_if="an EC2NodeClass selects its AMI by alias or SSM parameter"),
    VpcEndpoint("secretsmanager", "the webhook's secret", only_if="WebhookEndpoint is not none"),
    VpcEndpoint("execute-api", "the webhook", only_if="WebhookEndpoint is private"),
    VpcEndpoint("lambda", "the first catalogue at once; without it, within half an hour"),
    VpcEndpoint("cloudformation", "distinguishing a deletion of the stack from a rollback"),
    VpcEndpoint("arc-zonal-shift", "zonal shifts", only_if="ZonalShift is true"),
)
#: Services that most regions have no endpoint for, and what becomes of Joinery without a way to them.
WITHOUT_ENDPOINTS: Sequence[tuple[str, str]] = (
    ("iam", "name an instanceProfile in EC2NodeClasses instead of a role; the service-linked role of spot is not made"),
    ("savingsplans", "with Commitments as a share, Reserved Instances alone count; the catalogue's alarm says so"),
    ("pricing.api", "say OnDemandPrices=estimated: those of us-east-1, which come with the release"),
)


def api_server(site: Site) -> Iterator[Finding]:
    """Whether the API server answers, and is new enough."""
    try:
        version = site.get("/version")
    except OutOfReachError as error:
        remedy = (
            f"does kubectl get nodes work? If not: aws eks update-kubeconfig --name {site.cluster} --region "
            f"{site.region}; what is inside the cluster is looked at when it does"
        )
        yield fail("api server", str(error), remedy)
        return
    minor = int("".join(character for character in str(version.get("minor", "0")) if character.isdecimal()) or 0)
    text = f"Kubernetes {version.get('gitVersion', '')}"
    if (1, minor) < LEAST_KUBERNETES:
        least = ".".join(map(str, LEAST_KUBERNETES))
        remedy = f"upgrade the cluster to {least} or newer: before, nothing fences Joinery's rights in"
        yield fail("api server", text, remedy)
    else:
        yield ok("api server", text)


def egress(site: Site) -> Iterator[Finding]:
    """How the API server's calls of the webhook leave EKS, and whether functions find the API server."""
    network = site.eks.get("resourcesVpcConfig", {})
    mode = str(network.get("controlPlaneEgressMode", "AWS_MANAGED"))
    way = site.parameters.get("WebhookEndpoint", "public")
    if way == "none":
        yield note("egress", "no webhook: functions are woken by the schedule, once a minute (WebhookEndpoint=none)")
    elif mode == "AWS_MANAGED":
        yield ok("egress", "EKS routes the API server's calls of the webhook itself")
    elif mode == "CUSTOMER_ROUTED":
        text = "the API server's calls leave through the cluster's subnets (CUSTOMER_ROUTED)"
        remedy = "these need a route to the webhook's URL (NAT gateway, firewall rule), or WebhookEndpoint=private"
        yield note("egress", text, remedy)
    else:
        remedy = "deploy with WebhookEndpoint=private or none"
        yield warn("egress", f"the API server's calls leave EKS as {mode}: the URL may be out of reach", remedy)
    if network.get("endpointPublicAccess") is False and not site.parameters.get("SubnetIds"):
        remedy = "deploy with SubnetIds and SecurityGroupIds, from which the endpoint can be reached"
        yield fail("egress", "the cluster's endpoint is private, and the functions are in no VPC", remedy)


def webhook(site: Site) -> Iterator[Finding]:
    """Whether the webhook configuration leads to this stack's function, and whether that answers."""
    if site.parameters.get("WebhookEndpoint") == "none":
        return
    url = _url_in(site)
    if not url:
        yield fail("webhook", "the cluster has no webhook configuration of Joinery's", "deploy again")
        return
    host = site.outputs.get("WebhookUrl", "").split("/")[2:3]
    if host and host[0] not in url:
        yield fail("webhook", f"the webhook configuration leads elsewhere than to {host[0]}", "deploy again")
        return
    uid = "joinery-doctor"
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": uid, "dryRun": True, "operation": "CREATE", "resource": {"group": "", "resource": "events"}},
    }
    try:
        status, body = site.web.post(url, json.dumps(review).encode())
    except UnavailableError as error:
        if site.parameters.get("WebhookEndpoint") != "private":
            raise
        yield note("webhook", f"it is private, and cannot be reached from here: {error}")
        yield from _calls(site)
        return
    if status == 403:
        yield fail("webhook", "its token is refused", "make rotate-token, or deploy again")
    elif status != 200 or _answer(body) != uid:
        yield fail("webhook", f"it answers {status}", "look at the log of the webhook function: docs/runbook.md")
    else:
        yield ok("webhook", "it answers from here")
        yield from _calls(site)


def _calls(site: Site) -> Iterator[Finding]:
    calls = metric_sum(
        site, "AWS/Lambda", "Invocations", {"FunctionName": site.functions["Webhook"]}, timedelta(days=1)
    )
    if calls <= 1:  # that of this look
        remedy = "create a pod that fits nowhere; if nothing comes, the API server cannot reach the URL (see egress)"
        yield warn("webhook", "the API server has not called it for a day", remedy)


def _url_in(site: Site) -> str:
    try:
        stored = site.get(WEBHOOK.path)
    except NotFoundError:
        return ""
    urls = [hook.get("clientConfig", {}).get("url", "") for hook in stored.get("webhooks") or ()]
    return str(next(iter(urls), ""))


def _answer(body: bytes) -> str:
    try:
        response: Mapping[str, Any] = json.loads(body)["response"]
        return str(response["uid"])
    except (ValueError, KeyError, TypeError):
        return ""


def clocks(site: Site) -> Iterator[Finding]:
    """Whether this machine, AWS and the API server agree what time it is."""
    caller = site.aws.ask("sts", "get_caller_identity")
    headers = caller.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    moments = {}
    if "date" in headers:
        moments["AWS"] = datetime.strptime(headers["date"], "%a, %d %b %Y %H:%M:%S %Z").replace(
            tzinfo=site.now().tzinfo
        )
    # A dry run is not stored, and comes back with the moment at which it would have been.
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "joinery-doctor-"}}
    status, answer = site.ask_api("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", probe)
    created = answer.get("metadata", {}).get("creationTimestamp")
    if status < 300 and created:
        moments["the API server"] = datetime.fromisoformat(created)
    now = site.now()
    off = {who: abs(at - now) for who, at in moments.items() if abs(at - now) > _SKEW}
    for who, skew in off.items():
        remedy = "set this machine's clock; where it is the API server's, tell whoever runs it"
        yield warn("clock", f"this machine and {who} are {skew.total_seconds():.0f} s apart", remedy)
    if moments and not off:
        yield ok("clock", f"this machine agrees with {' and '.join(moments)}")


def vpc_endpoints(site: Site) -> Iterator[Finding]:
    """Whether functions in a VPC find what they call: an endpoint for each service, or a way to the internet."""
    subnets = [one for one in site.parameters.get("SubnetIds", "").split(",") if one]
    if not subnets:
        return
    (first, *_) = site.aws.ask("ec2", "describe_subnets", SubnetIds=subnets)["Subnets"]
    inside = [{"Name": "vpc-id", "Values": [first["VpcId"]]}]
    answer = site.aws.ask("ec2", "describe_vpc_endpoints", Filters=inside)
    there = {one["ServiceName"] for one in answer["VpcEndpoints"]}
    missing = [one.name for one in ENDPOINTS if _is_needed(site, one) and one.service(site.region) not in there]
    leaves = all(_leads_out(site, subnet, first["VpcId"]) for subnet in subnets)
    if missing and not leaves:
        text = f"VPC {first['VpcId']} has no NAT gateway, and no endpoint for {', '.join(missing)}"
        yield fail("vpc", text, "create these endpoints, or route the functions' subnets to a NAT gateway")
    elif missing:
        yield note("vpc", f"by way of NAT, because there is no endpoint for {', '.join(missing)}")
    else:
        yield ok("vpc", "every service that the functions call has an endpoint")


def _leads_out(site: Site, subnet: str, vpc: str) -> bool:
    """Whether a route of the subnet leads out of the VPC: of its own table, else of the VPC's main one."""
    own = {"Name": "association.subnet-id", "Values": [subnet]}
    main = {"Name": "association.main", "Values": ["true"]}
    tables = site.aws.ask("ec2", "describe_route_tables", Filters=[own])["RouteTables"]
    if not tables:
        inside = {"Name": "vpc-id", "Values": [vpc]}
        tables = site.aws.ask("ec2", "describe_route_tables", Filters=[inside, main])["RouteTables"]
    return any(route.get("NatGatewayId") or route.get("TransitGatewayId") for one in tables for route in one["Routes"])


def _is_needed(site: Site, endpoint: VpcEndpoint) -> bool:
    """What ``only_if`` says in words, where the stack's parameters tell."""
    way = site.parameters.get("WebhookEndpoint", "public")
    conditions = {
        "secretsmanager": way != "none",
        "execute-api": way == "private",
        "arc-zonal-shift": site.parameters.get("ZonalShift") == "true",
        "lambda": False,  # the first catalogue alone, which is there already
    }
    return conditions.get(endpoint.name, True)


def scheduler(site: Site) -> Iterator[Finding]:
    """How kube-scheduler scores nodes, as far as that can be seen."""
    try:
        is_packing = "MostAllocated" in json.dumps(site.eks, default=str)
    except JoineryError:
        is_packing = False
    if is_packing:
        yield ok("scheduler", "EKS scores nodes by MostAllocated")
    else:
        text = "EKS names no MostAllocated in its description of the cluster: pods are probably spread over the nodes"
        yield note(
            "scheduler",
            text,
            "choose MostAllocated where EKS offers it: pods then fill some nodes, and others become empty and go",
        )


CHECKS = (
    Check("api server", api_server),
    Check("egress", egress),
    Check("webhook", webhook),
    Check("clock", clocks),
    Check("vpc", vpc_endpoints),
    Check("scheduler", scheduler),
)
