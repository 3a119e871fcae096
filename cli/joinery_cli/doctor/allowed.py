"""May the functions do what they do, in the cluster and in the account?"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from joinery.decisions.installation.shipped import DOORS, groups_of
from joinery.gateways.partitions import partition_of
from joinery.gateways.workers import Threads
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError
from joinery.objects.kubernetes.references import collection
from joinery_cli.doctor.findings import Check, Finding, fail, note, ok, warn
from joinery_cli.doctor.site import Site

_SPOT_ROLE = "AWSServiceRoleForEC2Spot"
#: How many rights are asked for at a time.
_AT_A_TIME = 8
_NODE_POLICY = "AmazonEKSWorkerNode"


def cluster_rights(site: Site) -> Iterator[Finding]:
    """Whether the doors' groups may do in the cluster what the manifests grant them (SubjectAccessReview)."""
    granted = list(_granted(site))
    # One by one they take as many round trips as there are rights.
    answers = Threads(_AT_A_TIME).run([partial(_is_allowed, site, group, what) for group, what in granted])
    for answer in answers:
        if isinstance(answer, JoineryError):
            raise answer
    missing: dict[str, list[str]] = {}
    for (group, what), answer in zip(granted, answers, strict=True):
        if not answer:
            missing.setdefault(group, []).append(f"{what['verb']} {what['resource']}")
    for group, rights in missing.items():
        first = ", ".join(rights[:3]) + (f" and {len(rights) - 3} more" if len(rights) > 3 else "")
        yield fail("rights", f"group {group} may not {first}", "deploy again: the installer applies rbac.yaml")
    if not missing:
        groups = len({group for group, _ in granted})
        yield ok("rights", f"the functions' {groups} groups have all {len(granted)} rights in the cluster")


def _is_allowed(site: Site, group: str, attributes: Mapping[str, str]) -> bool:
    status, answer = site.ask_api(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "joinery-doctor", "groups": [group], "resourceAttributes": attributes},
        },
    )
    if status >= 400:
        raise ConfigurationError(f"creating a SubjectAccessReview: {status} {answer.get('message', '')}")
    return bool(answer.get("status", {}).get("allowed"))


def _granted(site: Site) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Groups and what the manifests let them do, one verb and one resource at a time.

    Where several groups have one role, the first is asked for all of it. Of the others only the binding may be amiss,
    so one right tells.
    """
    roles = {(role["kind"], role["metadata"]["name"]): role for role in site.wanted if "rules" in role}
    for binding in site.wanted:
        if "roleRef" in binding:
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            rights = list(_rights(role))
            first, *others = (subject["name"] for subject in binding["subjects"])
            yield from ((first, right) for right in rights)
            yield from ((group, rights[0]) for group in others)


def _rights(role: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    place = {"namespace": role["metadata"]["namespace"]} if role["kind"] == "Role" else {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name, _, subresource = resource.partition("/")
                part = {"subresource": subresource} if subresource else {}
                only = {"name": rule["resourceNames"][0]} if rule.get("resourceNames") else {}
                for verb in rule["verbs"]:
                    yield {"verb": verb, "group": group, "resource": name, **part, **only, **place}


def access_entries(site: Site) -> Iterator[Finding]:
    """Whether the cluster knows the functions' roles as their groups."""
    mode = site.eks.get("accessConfig", {}).get("authenticationMode", "")
    if site.parameters.get("AccessEntries") == "false":
        text = "the functions' roles must be mapped to their groups in aws-auth, which is not looked at"
        yield note("access", text)
        return
    if mode == "CONFIG_MAP":
        remedy = "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP, or aws-auth"
        yield fail("access", "the cluster has no access entries (CONFIG_MAP)", remedy)
        return
    lacking = [finding for door in DOORS for finding in _access_entry(site, door)]
    yield from lacking or [ok("access", f"the roles of {len(DOORS)} functions have access entries")]


def _access_entry(site: Site, door: str) -> Iterator[Finding]:
    """What is wrong with a door's entry. Deploying again mends nothing, because CloudFormation sees no change."""
    role, groups = _role_arn(site, door), groups_of(door)
    where = f"--cluster-name {site.cluster} --principal-arn {role} --kubernetes-groups {' '.join(groups)}"
    try:
        entry = site.aws.ask("eks", "describe_access_entry", clusterName=site.cluster, principalArn=role)
    except NotFoundError:
        yield fail("access", f"{door} has no access entry", f"aws eks create-access-entry {where}")
        return
    if lacking := [group for group in groups if group not in entry["accessEntry"].get("kubernetesGroups", ())]:
        text = f"the access entry of {door} lacks group {', '.join(lacking)}"
        yield fail("access", text, f"aws eks update-access-entry {where}")


def _role_arn(site: Site, door: str) -> str:
    """The role that a function has in this cluster: its own, or that of a member, which the member's stack says."""
    said = dict(pair.split("=", 1) for pair in site.outputs.get("FunctionRoles", "").split(",") if "=" in pair)
    own = said.get(f"joinery-{door.lower()}", "") if site.home else ""
    return own or str(site.configuration(door)["Role"])


def account_rights(site: Site) -> Iterator[Finding]:
    """Whether IAM would let the functions launch, tag, end and record (SimulatePrincipalPolicy).

    A simulation sees the roles' policies and the organisation's; it launches nothing.
    """
    denied: list[str] = []
    for door, action, resource, context in _acts(site):
        answer = site.aws.ask(
            "iam",
            "simulate_principal_policy",
            PolicySourceArn=_role_arn(site, door),
            ActionNames=[action],
            ResourceArns=[resource],
            ContextEntries=[
                {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                for key, value in context.items()
            ],
        )
        (result, *_) = answer["EvaluationResults"]
        if result["EvalDecision"] != "allowed":
            by = result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations")
            denied.append(f"{door.lower()}: {action}" + (" (by the organisation)" if by is False else ""))
    if denied:
        remedy = (
            "a boundary or a service control policy is against it, or somebody has changed the policies: "
            f"aws cloudformation detect-stack-drift --stack-name {site.stack}"
        )
        yield fail("account", f"not allowed: {', '.join(denied)}", remedy)
    else:
        yield ok("account", "the functions may launch, tag, end and record")


def _acts(site: Site) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Door, action, resource, and the context that the call has (the template's policies)."""
    partition, region = partition_of(site.region), site.region
    arn = f"arn:{partition}:ec2:{region}:*"
    region_of = {"aws:RequestedRegion": region}
    own = {
        f"aws:RequestTag/kubernetes.io/cluster/{site.cluster}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": site.cluster,
        "aws:RequestTag/karpenter.sh/nodepool": "default",
    }
    owned = {
        f"aws:ResourceTag/kubernetes.io/cluster/{site.cluster}": "owned",
        "aws:ResourceTag/karpenter.sh/nodepool": "default",
    }
    yield "Provisioning", "ec2:CreateLaunchTemplate", f"{arn}:launch-template/*", own
    yield "Provisioning", "ec2:CreateFleet", f"{arn}:fleet/*", own
    yield "Provisioning", "ec2:RunInstances", f"{arn}:instance/*", own
    yield "Provisioning", "ec2:CreateTags", f"{arn}:instance/*", {**own, "ec2:CreateAction": "CreateFleet"}
    yield "Provisioning", "iam:PassRole", _node_role_arn(site), {"iam:PassedToService": "ec2.amazonaws.com"}
    if (bucket := site.outputs.get("Bucket")) and not site.home:  # records are written in the home's name
        yield "Provisioning", "s3:PutObject", f"arn:{partition}:s3:::{bucket}/decisions/probe", {}
    yield "Lifecycle", "ec2:TerminateInstances", f"{arn}:instance/*", owned
    yield "Lifecycle", "ec2:DescribeInstances", "*", region_of
    yield "Lifecycle", "ec2:DescribeSubnets", "*", region_of


def _account_id(site: Site) -> str:
    return str(site.description["StackId"]).split(":")[4]


def _node_role(site: Site) -> str:
    return site.parameters.get("NodeRoleName") or site.outputs.get("NodeRole") or f"KarpenterNodeRole-{site.cluster}"


def _node_role_arn(site: Site) -> str:
    return f"arn:{partition_of(site.region)}:iam::{_account_id(site)}:role/{_node_role(site)}"


def node_role(site: Site) -> Iterator[Finding]:
    """Whether the nodes' role is there, with what a node needs, and may join the cluster."""
    name = _node_role(site).rpartition("/")[2]
    try:
        role = site.aws.ask("iam", "get_role", RoleName=name)["Role"]
    except NotFoundError:
        yield fail("node role", f"there is no role {name}", "make it, or deploy with NodeRoleName=NAME")
        return
    attached = site.aws.ask("iam", "list_attached_role_policies", RoleName=name)["AttachedPolicies"]
    if not any(policy["PolicyName"].startswith(_NODE_POLICY) for policy in attached):
        yield warn("node role", f"{name} has no AmazonEKSWorkerNodePolicy: nodes may not join", "attach it")
    else:
        yield ok("node role", f"{name} is there")
    yield from _joins(site, role)


def _joins(site: Site, role: Mapping[str, Any]) -> Iterator[Finding]:
    if site.eks.get("accessConfig", {}).get("authenticationMode", "") in ("", "CONFIG_MAP"):
        return
    try:
        entry = site.aws.ask("eks", "describe_access_entry", clusterName=site.cluster, principalArn=role["Arn"])
    except NotFoundError:
        remedy = (
            f"aws eks create-access-entry --cluster-name {site.cluster} --type EC2_LINUX --principal-arn {role['Arn']}"
        )
        yield fail(
            "node role", f"{role['RoleName']} has no access entry: nodes cannot join (unless aws-auth maps it)", remedy
        )
        return
    if not str(entry["accessEntry"].get("type", "")).startswith("EC2"):
        yield warn("node role", "its access entry is not of type EC2_LINUX", "delete it and create it anew")


def class_roles(site: Site) -> Iterator[Finding]:
    """Whether instances may be given the roles that EC2NodeClasses name, and Windows joins with them."""
    more = site.parameters.get("MoreNodeRoles", "").split()
    usual = () if site.parameters.get("NodeRoleName") else (f"KarpenterNodeRole-{site.cluster}",)
    names = {one.rpartition("/")[2] for one in (_node_role(site), *usual, *more)}
    for one in site.listed(collection("EC2NodeClass")):
        role = str(one.get("spec", {}).get("role") or "").rpartition("/")[2]
        if role and role not in names:
            text = f"EC2NodeClass {one['metadata']['name']} names {role}, which the functions may not give to instances"
            listed = " ".join([*more, role])
            yield fail(
                "node role", text, f'let the class name another, or deploy with Settings="MoreNodeRoles={listed}"'
            )
        elif role and _is_windows(one):
            yield from _runs_windows(site, role)


def _is_windows(node_class: Mapping[str, Any]) -> bool:
    spec = node_class.get("spec", {})
    aliases = [str(term.get("alias", "")) for term in spec.get("amiSelectorTerms") or ()]
    return any(one.lower().startswith("windows") for one in (str(spec.get("amiFamily", "")), *aliases))


def _runs_windows(site: Site, name: str) -> Iterator[Finding]:
    """The kube-proxy of Windows needs a group that EKS gives to entries of type EC2_WINDOWS alone (EKS User Guide,
    "Create access entries"). An entry keeps its type.
    """
    try:
        role = site.aws.ask("iam", "get_role", RoleName=name)["Role"]
        entry = site.aws.ask("eks", "describe_access_entry", clusterName=site.cluster, principalArn=role["Arn"])
    except NotFoundError:
        return  # aws-auth may map it
    if entry["accessEntry"].get("type") == "EC2_LINUX":
        text = f"{name} runs Windows with an access entry of type EC2_LINUX: its pods reach no Service and no DNS"
        yield warn("node role", text, "give Windows nodes a role of their own, with an access entry of EC2_WINDOWS")


def spot_role(site: Site) -> Iterator[Finding]:
    """Whether the account may launch spot instances at all."""
    try:
        site.aws.ask("iam", "get_role", RoleName=_SPOT_ROLE)
    except NotFoundError:
        remedy = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
        yield warn("spot", f"there is no {_SPOT_ROLE}: the first spot launch would fail", remedy)
    else:
        yield ok("spot", f"{_SPOT_ROLE} is there")


CHECKS: Sequence[Check] = (
    Check("rights", cluster_rights),
    Check("access", access_entries),
    Check("account", account_rights),
    Check("node role", node_role),
    Check("node role", class_roles),
    Check("spot", spot_role),
)
