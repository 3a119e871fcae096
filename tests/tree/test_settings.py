"""Settings: an environment is read once, and what is wrong in it is named."""

from datetime import timedelta

import pytest

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.disruption import CanaryRule
from joinery.objects.policies import TerminateFirst
from joinery.objects.settings import NEEDS, Settings, read, variable

_QUEUES = ("provisioning_queue", "lifecycle_queue", "disruption_queue")


def test_a_cluster_is_all_that_must_be_said() -> None:
    """Everything but the cluster's name has a default."""
    assert read({"JOINERY_CLUSTER": "blue"}) == Settings(cluster="blue")


def test_every_variable_is_read() -> None:
    """Each field has one variable, and its text becomes the field's type."""
    environment = {
        "JOINERY_CLUSTER": "blue",
        "JOINERY_REGION": "eu-north-1",
        "JOINERY_MODE": "observe",
        "JOINERY_ENABLED": "false",
        "JOINERY_MAX_LAUNCHES": "7",
        "JOINERY_MAX_HOURLY": "12.5",
        "JOINERY_NODE_SIZE": "small",
        "JOINERY_PREFERENCE_POLICY": "Ignore",
        "JOINERY_MIN_VALUES_POLICY": "BestEffort",
        "JOINERY_NODE_REPAIR": "reboot",
        "JOINERY_STEERING": "off",
        "JOINERY_ZONAL_SHIFT": "true",
        "JOINERY_SURGE_SINGLE_REPLICAS": "true",
        "JOINERY_REBALANCE": "drain",
        "JOINERY_DISRUPTION_MOVE_PRICE": "0.5",
        "JOINERY_DISRUPTION_PAYBACK": "1h30m",
        "JOINERY_DISRUPTION_SECONDS": "20",
        "JOINERY_SPOT_TO_SPOT": "false",
        "JOINERY_CANARY": "5% for 1h",
        "JOINERY_TERMINATE_FIRST": "static,reserved",
        "JOINERY_POD_DELETION_COST": "true",
        "JOINERY_NEW_NODES_REPAY": "false",
        "JOINERY_LEGACY_OBJECTS": "false",
        "JOINERY_DEFAULT_INSTANCE_PROFILE": "nodes",
        "JOINERY_EXPIRATION_OBEYS_BUDGETS": "true",
        "JOINERY_GATEWAYS": "simulator.world:gateways",
        "UNRELATED": "x",
    }

    assert read(environment) == Settings(
        cluster="blue",
        region="eu-north-1",
        mode="observe",
        enabled=False,
        max_launches=7,
        max_hourly=12.5,
        node_size="small",
        preference_policy="Ignore",
        min_values_policy="BestEffort",
        node_repair="reboot",
        steering="off",
        zonal_shift=True,
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
        legacy_objects=False,
        default_instance_profile="nodes",
        expiration_obeys_budgets=True,
        gateways="simulator.world:gateways",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CLUSTER", ""),
        ("MODE", "dry-run"),
        ("ENABLED", "maybe"),
        ("MAX_LAUNCHES", "-1"),
        ("MAX_LAUNCHES", "many"),
        ("MAX_HOURLY", "nan"),
        ("MAX_HOURLY", "cheap"),
        ("NODE_SIZE", "huge"),
        ("PREFERENCE_POLICY", "respect"),
        ("MIN_VALUES_POLICY", "none"),
        ("NODE_REPAIR", "restart"),
        ("STEERING", "toleration"),
        ("ZONAL_SHIFT", "away"),
        ("SURGE_SINGLE_REPLICAS", "sometimes"),
        ("REBALANCE", "true"),
        ("DISRUPTION_MOVE_PRICE", "free"),
        ("DISRUPTION_PAYBACK", "soon"),
        ("DISRUPTION_PAYBACK", "Never"),
        ("DISRUPTION_PAYBACK", "0s"),
        ("DISRUPTION_SECONDS", "-1"),
        ("SPOT_TO_SPOT", "15"),
        ("CANARY", "one node"),
        ("NEW_NODES_REPAY", "1h"),
        ("LEGACY_OBJECTS", "v1beta1"),
        ("EXPIRATION_OBEYS_BUDGETS", "10%"),
        ("TERMINATE_FIRST", "always"),
        ("GATEWAYS", "simulator.world"),
    ],
)
def test_a_wrong_variable_is_named(name: str, text: str) -> None:
    """Whoever reads the log of a function that does not start learns which variable to correct."""
    with pytest.raises(ConfigurationError, match=f"JOINERY_{name} "):
        read({"JOINERY_CLUSTER": "blue", f"JOINERY_{name}": text})


@pytest.mark.parametrize("door", NEEDS)
def test_a_door_says_which_address_it_lacks(door: str) -> None:
    """A door over the real gateways refuses to start without an address that it needs."""
    switches = {"enabled", "zonal_shift", "surge_single_replicas", "spot_to_spot", "pod_deletion_cost"}
    switches |= {"new_nodes_repay", "expiration_obeys_budgets", "legacy_objects", "access_entries"}
    full = {variable(name): "true" if name in switches else "9" * 40 for name in NEEDS[door]} | {
        "JOINERY_MODE": "act",
        "JOINERY_NODE_SIZE": "small",
        "JOINERY_PREFERENCE_POLICY": "Ignore",
        "JOINERY_MIN_VALUES_POLICY": "Strict",
        "JOINERY_NODE_REPAIR": "replace",
        "JOINERY_STEERING": "off",
        "JOINERY_REBALANCE": "off",
        "JOINERY_DISRUPTION_PAYBACK": "1h",
        "JOINERY_CANARY": "off",
        "JOINERY_TERMINATE_FIRST": "static",
        "JOINERY_ON_DEMAND_PRICES": "estimated",
        "JOINERY_METRICS": "cluster",
    }
    assert read(full).check(door)

    for name in set(NEEDS[door]) & {*_QUEUES, "bucket", "table", "webhook_token", "installer_role"}:
        with pytest.raises(ConfigurationError, match=variable(name)):
            read({**full, variable(name): ""}).check(door)


def test_a_short_token_is_refused() -> None:
    """A secret that can be guessed is none."""
    given = Settings(cluster="blue", provisioning_queue="q", lifecycle_queue="q", webhook_token="hunter2")

    with pytest.raises(ConfigurationError, match="JOINERY_WEBHOOK_TOKEN is too short"):
        given.check("webhook")
