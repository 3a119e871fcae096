"""What an API server refuses and a plan can go on without: a warning, beside the plan for what was meant."""

from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write, pod_document

LABELS = {"app": "a"}
APPS, BATCH, ONE = "apps/v1", "batch/v1", {"maxReplicas": 1}


def _pod(requests: dict[str, Any], limits: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return pod_document(containers=[{"name": "a", "resources": {"requests": requests, "limits": limits}}], **spec)


def _made(kind: str, selector: Any = None, **pod: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {**pod_document()["spec"], **pod}}
    spec = {"template": template} | ({"selector": selector} if selector else {})
    return _object(kind, BATCH if kind == "Job" else APPS, spec)


def _object(kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def _cron_job(schedule: str = "0 9 * * *", **pod: Any) -> dict[str, Any]:
    return _object("CronJob", BATCH, {"schedule": schedule, "jobTemplate": {"spec": _made("Job", **pod)["spec"]}})


def _budget(**spec: Any) -> dict[str, Any]:
    return _object("PodDisruptionBudget", "policy/v1", {"selector": {"matchLabels": LABELS}, **spec})


def _scaler(**spec: Any) -> dict[str, Any]:
    target = {"scaleTargetRef": {"apiVersion": APPS, "kind": "Deployment", "name": "x"}}
    return _object("HorizontalPodAutoscaler", "autoscaling/v2", {**target, **spec})


SELECTOR = {"matchLabels": LABELS}
SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": SELECTOR}
PORT = {"containerPort": 80, "hostPort": 80}
GPU, PAGES = "nvidia.com/gpu", "hugepages-2Mi"
NO_POLICY = "template.spec.restartPolicy: is missing: OnFailure or Never"


@pytest.mark.parametrize(
    ("document", "whys"),
    [
        (_made("Deployment"), ["spec.selector: is missing"]),
        (_made("StatefulSet"), ["spec.selector: is missing"]),
        (_made("DaemonSet"), ["spec.selector: is missing"]),
        (_made("Deployment", SELECTOR), []),
        (
            _made("Deployment", SELECTOR, restartPolicy="Never"),
            ["spec.template.spec.restartPolicy: must be Always, is Never"],
        ),
        (_made("Job"), [f"spec.{NO_POLICY}"]),
        (_made("Job", restartPolicy="OnFailure"), []),
        (
            _made("Job", restartPolicy="Always"),
            ["spec.template.spec.restartPolicy: must be OnFailure or Never, is Always"],
        ),
        (_cron_job(), [f"spec.jobTemplate.spec.{NO_POLICY}"]),
        (_cron_job("0 9 * *", restartPolicy="Never"), ["spec.schedule: '0 9 * *' has 4 fields, not 5"]),
        (_cron_job("@hourly", restartPolicy="Never"), []),
        (_cron_job("@every 90m", restartPolicy="Never"), []),
        (
            _pod({"cpu": 1, GPU: 1, PAGES: "2Mi"}, {}),
            [
                f"spec.containers[0].resources.limits.{name}: is missing, and requests have it"
                for name in (GPU, PAGES)
            ],
        ),
        (_pod({"cpu": 1}, {GPU: 1}), []),
        (_pod({GPU: 1}, {GPU: 1}, restartPolicy="Never"), []),
        (_pod({}, {}, restartPolicy="always"), ["spec.restartPolicy: must be Always, OnFailure or Never, is always"]),
        (
            pod_document(topologySpreadConstraints=[{**SPREAD, "minDomains": 3}, SPREAD]),
            [
                "spec.topologySpreadConstraints[0].minDomains: goes with whenUnsatisfiable: DoNotSchedule only",
                "spec.topologySpreadConstraints[1]: is the second one over zone with whenUnsatisfiable: ScheduleAnyway",
            ],
        ),
        (
            pod_document(topologySpreadConstraints=[SPREAD, {**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]),
            [],
        ),
        (
            pod_document(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 30}]),
            ["spec.tolerations[0].tolerationSeconds: goes with effect: NoExecute only"],
        ),
        (
            pod_document(tolerations=[{"operator": "Exists", "effect": "NoScedule"}]),
            ["spec.tolerations[0].effect: there is no NoScedule; is it NoSchedule?"],
        ),
        (
            pod_document(hostNetwork=True, containers=[{"name": "a", "ports": [PORT, {**PORT, "containerPort": 81}]}]),
            [
                "spec.containers[0].ports[1].hostPort: must be containerPort, 81, on the host's network",
                "spec.containers[0].ports[1].hostPort: 80 is used twice",
            ],
        ),
        (
            pod_document(containers=[{"name": "a", "ports": [PORT, {**PORT, "protocol": "UDP"}]}]),
            [],
        ),
        (
            _budget(minAvailable="100 %"),
            ["spec.minAvailable: must be a whole number or a percentage such as 50%, is '100 %'"],
        ),
        (_budget(maxUnavailable=-1), ["spec.maxUnavailable: must not be negative, is -1"]),
        (
            _budget(minAvailable=1, maxUnavailable="50%"),
            ["spec: has both minAvailable and maxUnavailable, and may have one of them"],
        ),
        (_budget(minAvailable="100%"), []),
        (_scaler(), ["spec.maxReplicas: must be one at least"]),
        (_scaler(minReplicas=3, maxReplicas=2), ["spec.maxReplicas: 2 is less than minReplicas, 3"]),
        (
            _object("PersistentVolumeClaim", "v1", {}),
            ["spec.accessModes: is missing", "spec.resources.requests.storage: is missing"],
        ),
    ],
)  # fmt: skip
def test_what_an_api_server_refuses_is_told(
    run: Run, cluster: str, write: Write, document: dict[str, Any], whys: list[str]
) -> None:
    """Whoever applies it later should not be the first to hear of it; the plan is made all the same."""
    path = write("x.json", document)
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-f", cluster, "-f", path)
    assert outcome.status == 0
    called = f"{document['kind']} {document['metadata']['name']}"
    assert [line for line in outcome.err.splitlines() if "API server" in line] == [
        f"warning: {path}: {called}: an API server refuses it: {why}" for why in whys
    ]


def test_what_a_cluster_has_had_was_not_refused(run: Run, cluster: str, write: Write) -> None:
    """An export is as its API server took it."""
    document = _made("Deployment")
    document["metadata"]["uid"] = "a"
    path = write("x.json", document)
    assert "API server" not in run("plan", "--now", NOW, "-f", cluster, "-f", path).err
