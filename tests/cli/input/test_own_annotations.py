"""Annotations of ours that do nothing where they stand are told: no API server would."""

from typing import Any

import pytest

from joinery.objects import own_keys
from joinery_cli.reading.names import nothing_reads
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

SURGE = "joinery.dev/surge-before-eviction"


@pytest.fixture
def warned(run: Run, write: Write) -> Any:
    """``warned(text, *objects)``: what the plan of a cluster and more objects says of our annotations."""

    def call(cluster: str, *objects: Any) -> list[str]:
        files = [("-f", write(f"{number}.json", one)) for number, one in enumerate(objects)]
        given = ("-f", write("cluster.yaml", cluster), *(word for pair in files for word in pair))
        outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), *given)
        assert outcome.status == 0, outcome.err
        return [line for line in outcome.err.splitlines() if "joinery.dev/" in line]

    return call


def _pod(**annotations: str) -> dict[str, Any]:
    pod = pod_document("web")
    pod["metadata"]["annotations"] = {f"joinery.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return pod


def _namespace(**annotations: str) -> dict[str, Any]:
    own = {f"joinery.dev/{key}": text for key, text in annotations.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": own}}


def _made(kind: str, annotations: dict[str, str], *, on_template: bool = True) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_document("web")["spec"]}
    metadata: dict[str, Any] = {"name": "web", "namespace": "default"}
    (template["metadata"] if on_template else metadata)["annotations"] = annotations
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            _pod(surge_before_evictoin="true"),
            f"nothing reads joinery.dev/surge-before-evictoin of a Pod; is it {SURGE}?",
        ),
        (
            {**pod_document("web"), "metadata": {"name": "web", "annotations": {SURGE.title(): "true"}}},
            f"nothing reads {SURGE.title()} of a Pod; is it {SURGE}?",
        ),
        (
            _namespace(pause="tonight"),
            "Namespace shop: metadata.annotations[joinery.dev/pause]: 'tonight': 'tonight' is not \"from CRON for",
        ),
        (
            _namespace(pause="all from 0 20 * * * for 11h"),
            "'all from 0 20 * * * for 11h': all belongs to a NodePool; without it the namespace's buffers are meant",
        ),
        (
            _namespace(pause="from 0 20 * * * for 5m"),
            "Namespace shop: joinery.dev/pause: so short a pause may do nothing: it ends 5 minutes before its window",
        ),
        (_namespace(paused="yes"), "Namespace shop: metadata.annotations[joinery.dev/paused]: 'yes' is neither"),
        (
            _pod(node_size="small"),
            "nothing reads joinery.dev/node-size of a Pod: it belongs to metadata.annotations of a NodePool",
        ),
        (
            _pod(disruption_price="$5"),
            "metadata.annotations[joinery.dev/disruption-price]: '$5' is no amount of dollars, such as 0.05",
        ),
        (
            _made("Deployment", {"joinery.dev/disruption-price": "5"}, on_template=False),
            "of a Deployment: it belongs to metadata.annotations of a NodePool or to "
            "spec.template.metadata.annotations of a Deployment",
        ),
        (
            _pod(pause="from 0 20 * * mon-fri for 11h"),
            "of a Pod: it belongs to metadata.annotations of a NodePool or to metadata.annotations of a Namespace",
        ),
        (_pod(surge_before_eviction="yes"), f"metadata.annotations[{SURGE}]: 'yes' is none of true, false"),
        (_pod(surge_before_eviction="true"), f"{SURGE} asks for what a pod without a Deployment cannot have"),
        (_made("StatefulSet", {SURGE: "true"}), f"{SURGE} asks for what a StatefulSet's pod cannot have"),
        (
            _made("Deployment", {SURGE: "true"}, on_template=False),
            f"nothing reads {SURGE} of a Deployment: it belongs to spec.template.metadata.annotations of a Deployment",
        ),
    ],
)
def test_what_a_pod_asks_for_in_vain_is_told(warned: Any, pod: Any, words: str) -> None:
    """Misspelt, on the wrong object, with a value that is none, or of a pod that no rollout replaces."""
    (line,) = warned(CLUSTER, pod)

    assert line.startswith("warning: ")
    assert words in line


def test_what_is_right_is_not_doubted(warned: Any) -> None:
    """A Deployment's pods may ask for their successors, and any pod may say that it does not want one."""
    assert warned(CLUSTER, _made("Deployment", {SURGE: "true"}), _pod(surge_before_eviction="false")) == []


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("metadata: {name: default, annotations: {joinery.dev/node-sise: small}}", "is it joinery.dev/node-size?"),
        (
            'metadata: {name: default, annotations: {joinery.dev/surge-before-eviction: "true"}}',
            "of a NodePool: it belongs to spec.template.metadata.annotations of a Deployment",
        ),
    ],
)
def test_what_a_node_pool_asks_for_in_vain_is_told(warned: Any, where: str, words: str) -> None:
    """A wrong value makes the NodePool invalid; a wrong key would be as if it were not there."""
    kind = "kind: NodePool\n"
    head, found, rest = CLUSTER.partition(kind)
    assert found
    line, _, rest = rest.partition("\n")
    (said,) = warned(f"{head}{kind}{where}\n{rest}")

    assert line == "metadata: {name: default}"
    assert words in said


def test_other_kinds_of_object_are_looked_at_too(warned: Any) -> None:
    """A buffer's schedule, a namespace's pause, a node class's trial."""
    objects = [
        (
            "autoscaling.x-k8s.io/v1beta1",
            "CapacityBuffer",
            "schedule",
            "there are joinery.dev/buffer-capacity-types and joinery.dev/buffer-schedule",
        ),
        ("v1", "Namespace", "pauze", "is it joinery.dev/pause?"),
        ("karpenter.k8s.aws/v1", "EC2NodeClass", "canari", "is it joinery.dev/canary?"),
    ]
    tags = [{"tags": {"a": "b"}}]
    specs: dict[str, dict[str, Any]] = {
        "CapacityBuffer": {"podTemplateRef": {"name": "none"}, "replicas": 1},
        "EC2NodeClass": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "nodes",
            "subnetSelectorTerms": tags,
            "securityGroupSelectorTerms": tags,
        },
    }
    said = warned(
        CLUSTER,
        *(
            {
                "apiVersion": version,
                "kind": kind,
                "metadata": {"name": "one", "annotations": {f"joinery.dev/{key}": "x"}},
                "spec": specs.get(kind, {}),
            }
            for version, kind, key, _ in objects
        ),
    )

    for _, kind, key, hint in objects:
        assert any(f"nothing reads joinery.dev/{key} of a" in line and hint in line for line in said), (kind, said)


@pytest.mark.parametrize(
    ("gates", "number"), [([], 1), ([{"name": "joinery.dev/on-demand"}], 0)], ids=["without the gate", "at the gate"]
)
def test_a_share_on_demand_needs_its_gate(warned: Any, gates: list[dict[str, str]], number: int) -> None:
    """Without it no pod is narrowed to on-demand capacity, and all may run on spot."""
    deployment = _made("Deployment", {"joinery.dev/on-demand": "2"})
    deployment["spec"]["template"]["spec"]["schedulingGates"] = gates

    said = [line for line in warned(CLUSTER, deployment) if "does nothing without a scheduling gate" in line]

    assert len(said) == number


def test_every_annotation_has_a_place_that_is_said() -> None:
    """Whoever wrote it elsewhere hears where it counts, whatever kinds it is about."""
    for key, own in own_keys.FOR_PEOPLE.items():
        (said,) = nothing_reads([key], "Service")
        kinds = ["Deployment" if kind == own_keys.POD else kind for kind in own.about]
        assert all(f"annotations of {kind}" in said for kind in map(_a, kinds)), said


def _a(kind: str) -> str:
    return f"an {kind}" if kind.startswith("E") else f"a {kind}"
