"""Settings: an environment is read once, and what is wrong in it is named."""

from datetime import timedelta

import pytest

from joinery.objects.default_spread import DefaultSpread
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.disruption import CanaryRule
from joinery.objects.policies import TerminateFirst
from joinery.objects.settings import NEEDS, SETTINGS, SWITCHES, Settings, chosen, in_force, read, variable
from joinery.objects.stack_settings import BY_THE_TEMPLATE

_QUEUES = ("provisioning_queue", "lifecycle_queue", "disruption_queue")


def test_a_cluster_is_all_that_must_be_said() -> None:
    """Everything but the cluster's name has a default."""
    assert read({"JOINERY_CLUSTER": "blue"}) == Settings(cluster="blue")


def test_everything_that_is_given_is_read() -> None:
    """Each address has a variable, what somebody chooses stands in one together, and text becomes the field's type."""
    settings = {
        "MaxLaunches": "7", "MaxHourly": "12.5", "NodeSize": "small", "PreferencePolicy": "Ignore",
        "MinValuesPolicy": "BestEffort", "OrdinaryTypes": "false", "ReservedEnis": "1", "PrefixDelegation": "true",
        "VmMemoryOverheadPercent": "0.05", "DryRuns": "false", "NodeRepair": "reboot", "Steering": "off",
        "ZonalShift": "true", "SurgeSingleReplicas": "true", "Rebalance": "drain", "DisruptionMovePrice": "0.5",
        "DisruptionPayback": "1h30m", "DisruptionSeconds": "20", "SpotToSpot": "false", "Canary": "5% for 1h",
        "TerminateFirst": "static,reserved", "PodDeletionCost": "true", "OnDemandShares": "true",
        "NewNodesRepay": "false", "DefaultSpread": "rack 2 ScheduleAnyway for batch",
        "LegacyObjects": "false", "DefaultInstanceProfile": "nodes", "ExpirationObeysBudgets": "true",
        "OnDemandPrices": "estimated", "Metrics": "node-pools", "SwitchedOff": "disruption, catalog",
        "RolePath": "/team/",
    }  # fmt: skip
    environment = {
        "JOINERY_CLUSTER": "blue",
        "JOINERY_REGION": "eu-north-1",
        "JOINERY_MODE": "observe",
        "JOINERY_GATEWAYS": "simulator.world:gateways",
        "JOINERY_SETTINGS": "; ".join(f"{name}={text}" for name, text in settings.items()),
        "UNRELATED": "x",
    }
    assert set(settings) == set(SETTINGS) - set(BY_THE_TEMPLATE) | {"RolePath"}

    assert read(environment, "disruption") == Settings(
        cluster="blue",
        region="eu-north-1",
        mode="observe",
        enabled=False,
        max_launches=7,
        max_hourly=12.5,
        node_size="small",
        preference_policy="Ignore",
        min_values_policy="BestEffort",
        ordinary_types=False,
        reserved_enis=1,
        prefix_delegation=True,
        vm_memory_overhead_percent=0.05,
        dry_runs=False,
        node_repair="reboot",
        steering="off",
        zonal_shift=True,
        on_demand_shares=True,
        surge_single_replicas=True,
        rebalance="drain",
        disruption_move_price=0.5,
        disruption_payback=timedelta(minutes=90),
        disruption_seconds=20.0,
        spot_to_spot=False,
        canary=CanaryRule(timedelta(hours=1), percent=5),
        terminate_first=frozenset({TerminateFirst.STATIC, TerminateFirst.RESERVED}),
        pod_deletion_cost=True,
        new_nodes_repay=False,
        default_spread=(DefaultSpread("rack", 2, "ScheduleAnyway", "batch"),),
        legacy_objects=False,
        default_instance_profile="nodes",
        expiration_obeys_budgets=True,
        on_demand_prices="estimated",
        metrics="node-pools",
        switched_off=frozenset({"disruption", "catalog"}),
        gateways="simulator.world:gateways",
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_a_default_is_what_it_says(name: str) -> None:
    """Whoever writes it down changes nothing."""
    default = SETTINGS[name].default
    assert in_force(f"{name}={default}" if default else "")[name] == in_force("")[name] == default
    assert read({"JOINERY_CLUSTER": "blue", "JOINERY_SETTINGS": f"{name}={default}" if default else ""}) == Settings(
        cluster="blue"
    )


def test_a_list_may_have_blanks() -> None:
    """As people write one."""
    text = "StarterSubnetIds=subnet-1, subnet-2; StarterSecurityGroupIds=sg-1,sg-2"
    assert in_force(text)["StarterSubnetIds"] == "subnet-1, subnet-2"


def test_a_door_is_switched_off_by_its_name() -> None:
    """The others are not."""
    off = {"JOINERY_CLUSTER": "blue", "JOINERY_SETTINGS": "SwitchedOff=disruption,catalog"}
    doors = [door for door in SWITCHES if not read(off, door).enabled]
    assert doors == ["disruption", "catalog"]


@pytest.mark.parametrize(("name", "text"), [("CLUSTER", ""), ("MODE", "dry-run"), ("GATEWAYS", "simulator.world")])
def test_a_wrong_variable_is_named(name: str, text: str) -> None:
    """Whoever reads the log of a function that does not start learns which variable to correct."""
    with pytest.raises(ConfigurationError, match=f"JOINERY_{name} "):
        read({"JOINERY_CLUSTER": "blue", f"JOINERY_{name}": text})


@pytest.mark.parametrize(
    "given",
    [
        "MaxLaunches=-1",
        "MaxLaunches=many",
        "MaxHourly=nan",
        "MaxHourly=cheap",
        "NodeSize=huge",
        "PreferencePolicy=respect",
        "MinValuesPolicy=none",
        "NodeRepair=restart",
        "Steering=toleration",
        "ZonalShift=away",
        "SurgeSingleReplicas=sometimes",
        "Rebalance=true",
        "DisruptionMovePrice=free",
        "DisruptionPayback=soon",
        "DisruptionPayback=Never",
        "DisruptionPayback=0s",
        "DisruptionSeconds=-1",
        "DisruptionSeconds=201",
        "SpotToSpot=15",
        "Canary=one node",
        "NewNodesRepay=1h",
        "LegacyObjects=v1beta1",
        "DefaultInstanceProfile=a b",
        "ExpirationObeysBudgets=10%",
        "TerminateFirst=always",
        "SwitchedOff=installer",
        "MaxLaunches=",
        "MaxLaunches=\u0667",
        "WebhookConcurrency=00",
        "WebhookRotationDays=000",
        "RolePath=team",
        "Commitments=aws",
        "Commitments=101%",
        'RolePath=/a"/',
        "RolePath=/a*/",
        "PermissionsBoundaryArn=arn:aws:iam::aws:policy/a*",
        "KmsKeyArn=key/1",
        "WebhookEndpoint=private",
    ],
)
def test_a_wrong_setting_is_named(given: str) -> None:
    """As somebody wrote it: the installer says so to CloudFormation."""
    with pytest.raises(ConfigurationError, match=f"^{given.partition('=')[0]}[ =]"):
        in_force(f"Metrics=cluster; {given}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeRepar=off", "there is no setting NodeRepar: do you mean NodeRepair?"),
        ("Xyzzy=1", "there is no setting Xyzzy"),
        ("NodeRepair=off; NodeRepair=reboot", "NodeRepair is there twice"),
        ("NodeRepair", "'NodeRepair' is not of the form Name=value"),
        ("RolePath = /a/", "'RolePath = /a/' is not of the form Name=value"),
        (f"RolePath=/{'a' * 3072}/", "Settings has 3083 characters: at most 3072 are taken"),
        ("RolePath=/a/ ; Canary=off", "'RolePath=/a/' is not of the form Name=value"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, said: str) -> None:
    """The template would pass over it in silence."""
    with pytest.raises(ConfigurationError) as refused:
        chosen(text)
    assert str(refused.value) == said


@pytest.mark.parametrize("door", NEEDS)
def test_a_door_says_which_address_it_lacks(door: str) -> None:
    """A door over the real gateways refuses to start without an address that it needs."""
    full = {variable(name): "9" * 40 for name in NEEDS[door]}
    full |= {"JOINERY_MODE": "act", "JOINERY_ACCESS_ENTRIES": "true", "JOINERY_COMMITMENTS": "off"}
    assert read(full).check(door)

    for name in set(NEEDS[door]) & {*_QUEUES, "bucket", "table", "webhook_token", "installer_role"}:
        with pytest.raises(ConfigurationError, match=variable(name)):
            read({**full, variable(name): ""}).check(door)


def test_a_short_token_is_refused() -> None:
    """A secret that can be guessed is none."""
    given = Settings(cluster="blue", provisioning_queue="q", lifecycle_queue="q", webhook_token="hunter2")

    with pytest.raises(ConfigurationError, match="JOINERY_WEBHOOK_TOKEN is too short"):
        given.check("webhook")


def test_a_share_of_commitments_has_aws_asked_and_a_file_has_not() -> None:
    """Both count."""
    for text, share, counts in (("off", 0.0, False), ("file", 0.0, True), ("40%", 0.4, True)):
        given = read({"JOINERY_CLUSTER": "blue", "JOINERY_COMMITMENTS": text})
        assert (given.commitment_share, given.counts_commitments) == (share, counts)
    with pytest.raises(ConfigurationError, match="JOINERY_COMMITMENTS is 'aws': expected off, file, or a share"):
        read({"JOINERY_CLUSTER": "blue", "JOINERY_COMMITMENTS": "aws"})
