"""One bad object in a good cluster: a reason on that pod or pool,
and the rest of the plan unchanged to the last field.
"""

from dataclasses import replace

import pytest

from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from tests.cases.scheduling.notation import Document
from tests.cases.scheduling.reading import cases, node_pool
from tests.cases.scheduling.reading_pods import pod

BAD_PODS: dict[str, Document] = {
    "an unknown operator": {"require": ["zone Near z1"]},
    "values that an operator cannot take": {"require": ["zone Gt high"]},
    "a contradiction": {"selector": {"zone": "z1"}, "require": ["zone In z2"]},
    "a quantity that is none": {"cpu": "much"},
    "a quantity out of range": {"memory": "100E"},
    "a negative quantity": {"cpu": "-1"},
    "a missing claim": {"claims": ["nowhere"]},
    "a missing class of an ephemeral volume": {
        "volumes": [{"name": "t", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gone"}}}}]
    },
    "a selector that cannot be read": {
        "spread": [{"over": "zone", "of": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]
    },
    "a selector without values": {
        "spread": [{"over": "zone", "of": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]
    },
    "a selector with values too many": {
        "apart": [{"over": "zone", "of": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}]
    },
    "no skew at all": {"spread": [{"over": "zone", "of": {"app": "bad"}, "maxSkew": 0}]},
    "an unknown way to be unsatisfiable": {
        "spread": [{"over": "zone", "of": {"app": "bad"}, "whenUnsatisfiable": "Maybe"}]
    },
    "no domains at least": {"spread": [{"over": "zone", "of": {"app": "bad"}, "minDomains": 0}]},
    "an unknown node affinity policy": {
        "spread": [{"over": "zone", "of": {"app": "bad"}, "nodeAffinityPolicy": "Perhaps"}]
    },
    "an unknown node taints policy": {
        "spread": [{"over": "zone", "of": {"app": "bad"}, "nodeTaintsPolicy": "Perhaps"}]
    },
    "a spread over nothing": {"spread": [{"over": "", "of": {"app": "bad"}}]},
    "an affinity over nothing": {"near": [{"over": "", "of": {"app": "bad"}}]},
    "a weight of nothing": {"apart": [{"over": "zone", "of": {"app": "bad"}, "weight": 0}]},
    "a weight beyond all": {"prefer": ["101: zone In z2"]},
    "an operator that only NodePools may use": {"require": ["instance-cpu Gte 2"]},
    "a required value that no label has": {"require": ["zone NotIn bad*value"]},
    "a selector's value that no label has": {"selector": {"team": "bad*value"}},
    "a selector's key that no label has": {"selector": {"-team": "red"}},
    "a number that Go does not read": {"require": ["instance-cpu Gt 1_0"]},
    "an unknown preferred operator": {"prefer": ["10: zone Near z2"]},
    "an unknown effect": {"tolerate": [{"key": "a", "operator": "Exists", "effect": "Never"}]},
    "a toleration of whatever value, with one": {"tolerate": [{"key": "a", "operator": "Exists", "value": "b"}]},
    "a toleration of nothing": {"tolerate": [{"operator": "Equal", "value": "a"}]},
    "a port beyond all": {"hostPorts": [70000]},
    "an unknown protocol": {"hostPorts": [{"hostPort": 80, "protocol": "HTTP"}]},
    "a namespace selector that cannot be read": {
        "near": [
            {"over": "zone", "of": {"app": "x"}, "inNamespaces": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
        ]
    },
    "affinity to pods that are nowhere": {"near": [{"over": "zone", "of": {"app": "nowhere"}}]},
    "a namespace selector that matches nothing": {
        "near": [{"over": "zone", "of": {"app": "web"}, "inNamespaces": {"team": "none"}}]
    },
    "a spread over a label that nothing has": {"spread": [{"over": "rack", "of": {"app": "bad"}}]},
    "an unknown toleration": {"tolerate": [{"key": "a", "operator": "Near"}]},
    "a required term that selects nothing": {"requireAny": [[]]},
    "a field match": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                    ]
                }
            }
        }
    },
    "a dynamic resource claim": {"resourceClaims": [{"name": "gpu"}]},
    "more than anything has": {"cpu": "1000000"},
}

BAD_POOLS: dict[str, Document] = {
    "contradictory requirements": {"requirements": ["zone In z1", "zone In z2"]},
    "a requirement against its own label": {"requirements": ["team In red"], "labels": {"team": "blue"}},
    "requirements that nothing meets": {"requirements": ["arch In riscv64"]},
    "no offering": {"requirements": ["zone In z9"]},
    "a class that does not exist": {"nodeClass": "gone"},
    "minValues beyond all values": {"requirements": ["type Exists min 50"]},
    "one taint twice": {"taints": ["a:NoSchedule", "a:NoSchedule"]},
    "a restricted label": {"requirements": ["karpenter.k8s.aws/ec2nodeclass In x"]},
}


def _good() -> Problem:
    """A cluster with running nodes, spread pods and plain ones."""
    found = next(case for case in cases() if case.name == "a zone without any node yet is a domain all the same")
    plain = pod({"name": "plain", "cpu": "2", "memory": "8Gi"})
    snapshot = found.problem.snapshot
    return replace(found.problem, snapshot=replace(snapshot, pods=(*snapshot.pods, plain)))


@pytest.mark.parametrize("what", BAD_PODS)
def test_a_bad_pod_gets_a_reason_and_changes_nothing_else(what: str) -> None:
    """Whatever is wrong with it, the others go where they would have gone without it."""
    good, given = _good(), {"name": "bad", "cpu": "1", "labels": {"app": "bad"}, **BAD_PODS[what]}
    spoiled = replace(good, snapshot=replace(good.snapshot, pods=(*good.snapshot.pods, pod(given))))
    before, after = solve(good), solve(spoiled)
    (left,) = after.unplaced
    assert left.pod == "default/bad"
    assert all(reason.message for reason in left.reasons)
    assert replace(after, unplaced=()) == before
    assert verify(spoiled, after) == ()


@pytest.mark.parametrize(
    "impossible", ["team In bad*value", "team NotIn bad*value", f"team In {'x' * 64}", "instance-cpu Gt many"]
)
def test_a_preference_that_no_node_can_match_is_dropped_and_said(impossible: str) -> None:
    """It gets into no claim, and costs no other preference, however much it weighs."""
    good = _good()
    given = {"name": "picky", "cpu": "1", "prefer": [f"1: {impossible}", "50: zone In z2"]}
    asked = replace(good, snapshot=replace(good.snapshot, pods=(*good.snapshot.pods, pod(given))))
    packing = solve(asked)
    assert packing.unplaced == ()
    (dropped,) = [found.dropped for found in packing.relaxed if found.pod == "default/picky"]
    assert len(dropped) == 1
    assert dropped[0].startswith("preferred node affinity: ")
    zones = [launch.offering.zone for launch in packing.launches if "default/picky" in launch.pods]
    assert zones in ([], ["z2"])
    assert "bad*value" not in str(packing.launches)
    assert verify(asked, packing) == ()


def test_of_several_required_terms_those_that_can_match_count() -> None:
    """As for kube-scheduler, which cannot parse the other."""
    good = _good()
    given = {"name": "either", "cpu": "1", "requireAny": [["zone In bad*value"], ["zone In z2"]]}
    asked = replace(good, snapshot=replace(good.snapshot, pods=(*good.snapshot.pods, pod(given))))
    packing = solve(asked)
    assert (packing.unplaced, packing.relaxed, verify(asked, packing)) == ((), (), ())


@pytest.mark.parametrize("what", BAD_POOLS)
def test_a_bad_pool_gets_a_reason_and_changes_nothing_else(what: str) -> None:
    """Even with the highest weight: it takes no part, and says why."""
    good = _good()
    bad = node_pool({"name": "bad", "weight": 100, **BAD_POOLS[what]})
    spoiled = replace(good, snapshot=replace(good.snapshot, node_pools=(*good.snapshot.node_pools, bad)))
    before, after = solve(good), solve(spoiled)
    (reason,) = after.pool_reasons
    assert (str(reason.subject), bool(reason.message)) == ("NodePool bad", True)
    assert replace(after, pool_reasons=()) == before
    assert verify(spoiled, after) == ()
