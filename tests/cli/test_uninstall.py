"""`joinery uninstall`, over an account and a cluster in memory: order, choices, and being stopped anywhere."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.installation.objects import LEASE, MARKED, WEBHOOK
from joinery.decisions.installation.removal import UNINSTALLING, Disposal, Nodes
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.references import KINDS, Reference
from joinery_cli.uninstall.place import Place, UnfinishedError
from joinery_cli.uninstall.steps import STEPS, go_through
from simulator.kubernetes.objects import InMemoryObjects

STACK, BUCKET = "joinery-blue", "joinery-blue-bucket-1"
#: What CloudFormation leaves of the stack.
LEFT = {"Bucket": BUCKET, "NodeRole": "joinery-blue-role-1", "NodeInstanceProfile": "joinery-blue-profile-1"}
#: The tags of an instance of ours, of one of Karpenter v0.31, and of one of EKS Auto Mode.
OURS = {"eks:eks-cluster-name": "blue", keys.NODE_POOL: "default", keys.NODE_CLASS: "default"}
OLD = {keys.MANAGED_BY: "blue", keys.PROVISIONER_NAME: "default"}
AUTO = {"eks:eks-cluster-name": "blue", keys.NODE_POOL: "general-purpose", "eks:kubernetes-node-class-name": "default"}
MAPPINGS = {"ProvisioningBells": "u1", "LifecycleBells": "u2"}
SCHEDULES = {"ProvisioningSchedule": "s1", "LifecycleSchedule": "s2"}
INITIALIZED = {"conditions": [{"type": "Initialized", "status": "True"}]}


class Account:
    """What the steps ask of AWS. ``calls``: what changed something, in order. ``fails_at``: the call that fails.
    ``gone``: resources that CloudFormation lists and has deleted.
    """

    def __init__(self) -> None:
        self.on = {*MAPPINGS.values(), *SCHEDULES.values()}
        self.templates, self.profiles, self.objects = ["lt-1"], ["profile-1"], ["catalog.json.gz"]
        self.stack_status = "CREATE_COMPLETE"
        self.has_bucket = True
        self.of_nodes = {LEFT["NodeRole"], LEFT["NodeInstanceProfile"]}
        self.instances: dict[str, Mapping[str, str]] = {"i-1": OURS}
        self.refusal = ""
        self.gone: set[str] = set()
        self.mode = "act"
        self.calls: list[str] = []
        self.fails_at = -1

    def ask(self, service: str, operation: str, **given: Any) -> Mapping[str, Any]:
        if not operation.startswith(("get_", "list_", "describe_")):
            if len(self.calls) == self.fails_at:
                self.fails_at = -1
                raise UnavailableError(f"{service} {operation}: throttled")
            self.calls.append(operation)
        answer: Mapping[str, Any] = getattr(self, f"_{operation}")(**given)
        return answer

    def _list_stacks(self, StackStatusFilter: list[str]) -> Any:  # noqa: N803
        stack = {"StackName": STACK, "StackId": f"arn:{STACK}"}
        return {"StackSummaries": [stack] if self.stack_status in StackStatusFilter else []}

    def _list_stack_resources(self, StackName: str) -> Any:  # noqa: N803
        of = {"AWS::Lambda::EventSourceMapping": MAPPINGS, "AWS::Scheduler::Schedule": SCHEDULES}
        resources = [(kind, name, physical) for kind, those in of.items() for name, physical in those.items()]
        keys = ("ResourceType", "LogicalResourceId", "PhysicalResourceId")
        return {"StackResourceSummaries": [dict(zip(keys, one, strict=True)) for one in resources]}

    def _get_event_source_mapping(self, UUID: str) -> Any:  # noqa: N803
        self._find(UUID)
        return {"State": "Enabled" if UUID in self.on else "Disabled"}

    def _update_event_source_mapping(self, UUID: str, Enabled: bool) -> Any:  # noqa: N803
        self.on.discard(UUID)
        return {}

    def _get_schedule(self, Name: str) -> Any:  # noqa: N803
        self._find(Name)
        return {"Name": Name, "State": "ENABLED" if Name in self.on else "DISABLED", "Arn": "not a parameter"}

    def _update_schedule(self, Name: str, State: str) -> Any:  # noqa: N803
        self.on.discard(Name)
        return {}

    def _find(self, name: str) -> None:
        if name in self.gone:
            raise NotFoundError(f"there is no {name}")

    def _describe_instances(self, Filters: Any) -> Any:  # noqa: N803
        keys = next(one["Values"] for one in Filters if one["Name"] == "tag-key")
        found = [{"InstanceId": name} for name, tags in self.instances.items() if set(keys) & set(tags)]
        return {"Reservations": [{"Instances": found}]}

    def _terminate_instances(self, InstanceIds: list[str]) -> Any:  # noqa: N803
        self.instances = {name: tags for name, tags in self.instances.items() if name not in InstanceIds}
        return {}

    def _describe_launch_templates(self, Filters: Any) -> Any:  # noqa: N803
        return {"LaunchTemplates": [{"LaunchTemplateId": one} for one in self.templates]}

    def _delete_launch_template(self, LaunchTemplateId: str) -> Any:  # noqa: N803
        self.templates.remove(LaunchTemplateId)
        return {}

    def _list_instance_profiles(self, PathPrefix: str) -> Any:  # noqa: N803
        profiles = [{"InstanceProfileName": one, "Roles": [{"RoleName": "nodes"}]} for one in self.profiles]
        return {"InstanceProfiles": profiles}

    def _remove_role_from_instance_profile(self, InstanceProfileName: str, RoleName: str) -> Any:  # noqa: N803
        return {}

    def _delete_instance_profile(self, InstanceProfileName: str) -> Any:  # noqa: N803
        self.profiles.remove(InstanceProfileName)
        return {}

    def _describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        mode = {"ParameterKey": "Mode", "ParameterValue": self.mode}
        return {"Stacks": [{"StackStatus": self.stack_status, "Parameters": [mode]}]}

    def _delete_stack(self, StackName: str) -> Any:  # noqa: N803
        self.stack_status = "DELETE_FAILED" if self.refusal else "DELETE_COMPLETE"
        return {}

    def _describe_stack_events(self, StackName: str) -> Any:  # noqa: N803
        failed = {"LogicalResourceId": "Connection", "PhysicalResourceId": "x", "ResourceStatus": "DELETE_FAILED"}
        if self.refusal:
            return {"StackEvents": [failed | {"ResourceStatusReason": self.refusal}]}
        names = ("LogicalResourceId", "PhysicalResourceId", "ResourceStatus")
        return {"StackEvents": [dict(zip(names, (*one, "DELETE_SKIPPED"), strict=True)) for one in LEFT.items()]}

    def _get_role(self, RoleName: str) -> Any:  # noqa: N803
        return self._of_nodes(RoleName)

    def _get_instance_profile(self, InstanceProfileName: str) -> Any:  # noqa: N803
        return self._of_nodes(InstanceProfileName)

    def _of_nodes(self, name: str) -> Any:
        if name not in self.of_nodes:
            raise NotFoundError(name)
        return {}

    def _list_buckets(self) -> Any:
        return {"Buckets": [{"Name": BUCKET}] if self.has_bucket else []}

    def _list_objects_v2(self, Bucket: str) -> Any:  # noqa: N803
        return {"Contents": [{"Key": one} for one in self.objects]} if self.objects else {}

    def _delete_objects(self, Bucket: str, Delete: Any) -> Any:  # noqa: N803
        self.objects = []
        return {}

    def _delete_bucket(self, Bucket: str) -> Any:  # noqa: N803
        assert not self.objects, "BucketNotEmpty"
        self.has_bucket = False
        return {}


@pytest.fixture
def account() -> Account:
    """A stack with all that its doors have made."""
    return Account()


@pytest.fixture
def cluster() -> InMemoryObjects:
    """An installation with a node that is being disrupted."""
    cluster = InMemoryObjects()
    marks = {keys.DISRUPTION_COMMAND: "{}", keys.PLANNED_PODS: "a"}
    claim = {"kind": "NodeClaim", "metadata": {"name": "default-1", "annotations": marks}, "status": INITIALIZED}
    taints = [{"key": keys.DISRUPTED_TAINT}, {"key": "team"}]
    node = {"kind": "Node", "metadata": {"name": "node-1", "labels": {keys.NODE_POOL: "default"}}}
    for reference in (MARKED, WEBHOOK, LEASE):
        cluster.put({"kind": reference.kind, "metadata": {"name": reference.name, "namespace": reference.namespace}})
    cluster.put(claim)
    cluster.put({**node, "spec": {"taints": taints}})
    return cluster


def place_of(account: Account, cluster: InMemoryObjects, **chosen: Any) -> Place:
    """Everything retired and deleted, unless chosen otherwise, by a clock that runs as somebody waits."""
    seconds = [0.0]

    def sleep(span: float) -> None:
        seconds[0] += span

    defaults: dict[str, Any] = {"nodes": Nodes.RETIRE, "bucket": Disposal.DELETE, "definitions": Disposal.KEEP}
    return Place(
        cluster="blue", region="us-east-1", stack=STACK, aws=account, objects=cluster, now=lambda: seconds[0],
        sleep=sleep, deadline=60.0, say=lambda line: None, **(defaults | chosen),
    )  # fmt: skip


def test_nothing_is_left_of_account_and_cluster(account: Account, cluster: InMemoryObjects) -> None:
    """Switches, nodes, templates, profiles, stack, bucket and Lease."""
    go_through(place_of(account, cluster))
    assert not account.on
    assert (account.templates, account.profiles, account.instances) == ([], [], {})
    assert (account.stack_status, account.has_bucket) == ("DELETE_COMPLETE", False)
    assert cluster.read(WEBHOOK) is None
    assert cluster.read(LEASE) is None
    assert cluster.read(Reference("NodeClaim", "default-1")) is None


@pytest.mark.parametrize("kind", ["Machine", "NodeClaim.v1beta1"])
def test_legacy_nodes_end_or_are_handed_over_too(account: Account, cluster: InMemoryObjects, kind: str) -> None:
    """Karpenter v0.31 had a condition of its own for a node that is ready for pods."""
    done = {"conditions": [{"type": "MachineInitialized" if kind == "Machine" else "Initialized", "status": "True"}]}
    noted = {"name": "old-1", "annotations": {keys.PLANNED_PODS: "a"}}
    cluster.put({"kind": kind, "metadata": noted, "status": done})
    go_through(place_of(account, cluster, nodes=Nodes.KEEP))
    kept = cluster.read(Reference(kind, "old-1"))
    assert kept is not None
    assert kept["metadata"]["annotations"] == {}

    go_through(place_of(account, cluster))
    assert cluster.read(Reference(kind, "old-1")) is None


@pytest.mark.parametrize("nodes", Nodes)
def test_nodes_of_another_provider_are_left_alone(account: Account, cluster: InMemoryObjects, nodes: Nodes) -> None:
    """EKS Auto Mode keeps NodeClaims too, under the same definition, and its nodes have the same labels and taints."""
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    claim = {"kind": "NodeClaim", "metadata": {"name": "auto-1"}, "spec": {"nodeClassRef": reference}}
    labels = {keys.NODE_POOL: "general-purpose", "eks.amazonaws.com/compute-type": "auto"}
    node = {"kind": "Node", "metadata": {"name": "i-1", "labels": labels}}
    cluster.put(claim)
    cluster.put({**node, "spec": {"taints": [{"key": keys.DISRUPTED_TAINT}]}})
    definition = Reference("CustomResourceDefinition", "nodeclaims.karpenter.sh")
    cluster.put({"kind": definition.kind, "metadata": {"name": definition.name}})
    go_through(place_of(account, cluster, nodes=nodes, definitions=Disposal.DELETE))

    assert cluster.read(definition)
    assert cluster.read(Reference("NodeClaim", "auto-1"))
    left = cluster.read(Reference("Node", "i-1"))
    assert left is not None
    assert left["spec"]["taints"] == [{"key": keys.DISRUPTED_TAINT}]


def test_definitions_go_with_their_objects_but_for_karpenter_s(account: Account, cluster: InMemoryObjects) -> None:
    """Whose definition stays, its objects stay as they are: somebody else looks after them, and after their end."""
    finalizers = ["karpenter.sh/termination"]
    for kind, annotations in (("NodePool", {"controller-gen.kubebuilder.io/version": "v0.19.0"}), ("EC2NodeClass", {})):
        named = {"name": KINDS[kind].definition, "annotations": annotations}
        cluster.put({"kind": "CustomResourceDefinition", "metadata": named})
        cluster.put({"kind": kind, "metadata": {"name": "default", "finalizers": finalizers}})
    go_through(place_of(account, cluster, definitions=Disposal.DELETE))

    assert cluster.read(Reference("CustomResourceDefinition", "nodepools.karpenter.sh"))
    assert cluster.read(Reference("CustomResourceDefinition", "ec2nodeclasses.karpenter.k8s.aws")) is None
    pool, node_class = (cluster.read(Reference(kind, "default")) for kind in ("NodePool", "EC2NodeClass"))
    assert pool is not None
    assert pool["metadata"]["finalizers"] == finalizers
    assert "finalizers" not in (node_class or {"metadata": {}})["metadata"]


def test_buyers_stop_before_nodes_go_and_drainers_after(account: Account, cluster: InMemoryObjects) -> None:
    """Otherwise new nodes would be bought for the pods that are drained."""
    names = [step.name for step in STEPS]
    order = ["webhook", "whatever buys or disrupts", "nodes", "whatever drains", "stack", "rights in the cluster"]
    assert [name for name in names if name in order] == order
    go_through(place_of(account, cluster), STEPS[:3])
    assert account.on == {MAPPINGS["LifecycleBells"], SCHEDULES["LifecycleSchedule"]}


@pytest.mark.parametrize("fails_at", range(11))
def test_stopped_at_any_call_it_is_simply_given_again(
    account: Account, cluster: InMemoryObjects, fails_at: int
) -> None:
    """Nothing is remembered: every step looks at what is still to be done."""
    account.fails_at = fails_at
    place = place_of(account, cluster)
    with pytest.raises(UnavailableError):
        go_through(place)
    go_through(place)
    assert not account.on
    assert (account.templates, account.profiles, account.has_bucket) == ([], [], False)


def test_a_stack_that_was_deleted_in_part_is_gone_through_again(account: Account, cluster: InMemoryObjects) -> None:
    """CloudFormation lists the resources that it has deleted, for as long as others are left."""
    account.stack_status = "DELETE_FAILED"
    account.gone = {*MAPPINGS.values(), *SCHEDULES.values()}
    go_through(place_of(account, cluster))
    assert account.stack_status == "DELETE_COMPLETE"


def test_done_twice_it_changes_nothing_more(account: Account, cluster: InMemoryObjects) -> None:
    """What is gone is no error."""
    place = place_of(account, cluster)
    go_through(place)
    changed = len(account.calls)
    go_through(place)
    assert len(account.calls) == changed


@pytest.mark.parametrize(
    ("nodes", "left"), [(Nodes.RETIRE, ["x/y"]), (Nodes.KEEP, ["karpenter.k8s.aws/termination", "x/y"])]
)
def test_node_classes_can_be_deleted_when_nobody_is_left_to_guard_them(
    account: Account, cluster: InMemoryObjects, nodes: Nodes, left: list[str]
) -> None:
    """A finalizer of ours would keep them for ever. Kept nodes have another controller, and it is that one's too."""
    finalizers = ["karpenter.k8s.aws/termination", "x/y"]
    cluster.put({"kind": "EC2NodeClass", "metadata": {"name": "default", "finalizers": finalizers}})
    go_through(place_of(account, cluster, nodes=nodes))
    node_class = cluster.read(Reference("EC2NodeClass", "default"))
    assert node_class
    assert node_class["metadata"]["finalizers"] == left


def test_nodes_that_are_kept_are_karpenters(account: Account, cluster: InMemoryObjects) -> None:
    """Our marks go, its own stay; role and instance profile too, because instances need them."""
    go_through(place_of(account, cluster, nodes=Nodes.KEEP, bucket=Disposal.KEEP))
    claim, node = cluster.read(Reference("NodeClaim", "default-1")), cluster.read(Reference("Node", "node-1"))
    assert claim
    assert node
    assert claim["metadata"]["annotations"] == {}
    assert node["spec"]["taints"] == [{"key": "team"}]
    assert (account.profiles, account.instances, account.has_bucket) == (["profile-1"], {"i-1": OURS}, True)


def test_it_says_what_stays_with_kept_nodes_and_why(account: Account, cluster: InMemoryObjects) -> None:
    """Also when it is given again, and the stack is gone."""
    place = place_of(account, cluster, nodes=Nodes.KEEP)
    for _ in range(2):
        results = {one.step: one.result for one in go_through(place)}
        assert results["instance profiles"] == "1 of node classes stay, because kept nodes need them"
        assert results["role of the nodes"] == (
            "the role joinery-blue-role-1 and the instance profile joinery-blue-profile-1 stay, because nodes without "
            "them lose the cluster: delete them when the last node is gone"
        )


def test_it_does_not_say_that_what_is_gone_stays(account: Account, cluster: InMemoryObjects) -> None:
    """The installer has removed it, because no node was left. Or the stack never made a role."""
    account.profiles, account.of_nodes = [], set()
    results = {one.step: one.result for one in go_through(place_of(account, cluster, nodes=Nodes.KEEP))}
    assert results["instance profiles"] == "none of a node class is left"
    assert results["role of the nodes"] == "none of the stack's is left"


def test_the_installer_is_told_what_becomes_of_nodes(account: Account, cluster: InMemoryObjects) -> None:
    """It refuses to be deleted otherwise."""
    go_through(place_of(account, cluster, nodes=Nodes.KEEP), STEPS[:1])
    marked = cluster.read(MARKED)
    assert marked
    assert marked["metadata"]["annotations"][UNINSTALLING] == "keep"


def test_waiting_has_an_end_and_says_for_what(account: Account, cluster: InMemoryObjects) -> None:
    """A node that is still starting cannot be handed over."""
    cluster.patch(Reference("NodeClaim", "default-1"), {"status": {"conditions": []}})
    place = place_of(account, cluster, nodes=Nodes.KEEP)
    cluster.patch(Reference("NodeClaim", "default-1"), {"metadata": {"annotations": {keys.DISRUPTION_COMMAND: None}}})
    with pytest.raises(UnfinishedError, match="default-1 is starting. Run the same command again"):
        go_through(place)


def test_a_stack_that_cannot_be_deleted_says_why(account: Account, cluster: InMemoryObjects) -> None:
    """In CloudFormation's words, which are the installer's."""
    account.refusal = "the cluster still has 2 NodeClaims"
    with pytest.raises(UnfinishedError, match="Connection: the cluster still has 2 NodeClaims"):
        go_through(place_of(account, cluster))


def test_without_a_cluster_the_account_is_emptied_all_the_same(account: Account, cluster: InMemoryObjects) -> None:
    """Its instances are found by their tags."""
    go_through(replace(place_of(account, cluster), objects=None))
    assert account.instances == {}
    assert account.stack_status == "DELETE_COMPLETE"


def test_instances_of_others_run_on(account: Account, cluster: InMemoryObjects) -> None:
    """EKS Auto Mode tags its instances with NodePools too. Those of Karpenter v0.31 were ours to end."""
    account.instances |= {"i-2": OLD, "i-3": AUTO}
    go_through(place_of(account, cluster))
    assert account.instances == {"i-3": AUTO}


def test_nodes_that_were_only_observed_are_not_retired(account: Account, cluster: InMemoryObjects) -> None:
    """They are those of the controller beside which Joinery was tried."""
    account.mode = "observe"
    with pytest.raises(ConfigurationError, match="stack joinery-blue only observes"):
        go_through(place_of(account, cluster, nodes=Nodes.RETIRE))
    assert account.calls == []
    go_through(place_of(account, cluster, nodes=Nodes.KEEP))
    assert account.stack_status == "DELETE_COMPLETE"
