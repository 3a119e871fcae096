"""``joinery plan`` and ``disrupt`` with NodeOverlays: what counts as the price, and what AWS's list says."""

from typing import Any

from tests.cli.conftest import NOW, Run, Write, pod_document

PLAN = ("plan", "-o", "json", "--now", NOW)


def overlay(name: str, **spec: Any) -> dict[str, Any]:
    """As a person writes it; for all instance types where it names none."""
    document = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}}
    return {**document, "spec": {"requirements": [], **spec}}


def only(key: str, *values: str) -> list[dict[str, Any]]:
    """Requirements for these values of a label."""
    return [{"key": key, "operator": "In", "values": list(values)}]


LARGE = only("node.kubernetes.io/instance-type", "m7a.large")


def test_a_plan_buys_by_the_price_of_an_overlay_and_says_that_of_the_list(run: Run, cluster: str, write: Write) -> None:
    """The smaller node is the cheaper one by AWS's list, and not with a licence for each."""
    licence = write("overlay.json", overlay("licence", requirements=LARGE, priceAdjustment="+5"))
    arguments = (cluster, write("pod.json", pod_document()), licence)
    document = run(*PLAN, *arguments).document
    assert [launch["offering"]["instanceType"] for launch in document["launch"]] == ["m7a.xlarge"]
    assert "list" not in document["cost"]
    dear = write("overlay.json", overlay("licence", priceAdjustment="+5"))
    cost = run(*PLAN, *arguments[:2], dear).document["cost"]
    assert cost["hourly"] == round(cost["list"] + 5, 6)
    assert "by AWS's list $0.1" in run("plan", "--now", NOW, *arguments[:2], dear).out


def test_the_catalogue_says_that_it_counts_no_overlay(run: Run, write: Write) -> None:
    """Which types an overlay changes depends on the NodePool."""
    licence = write("overlay.json", overlay("licence", requirements=LARGE, priceAdjustment="+5"))
    assert "NodeOverlays are not counted here" in run("catalog", licence).err
    assert "NodeOverlay" not in run("catalog").err


def test_an_overlay_gives_nodes_a_resource_that_pods_ask_for(run: Run, cluster: str, write: Write) -> None:
    """Without it nothing has the device."""
    pod = pod_document()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"smarter-devices/fuse": "1"}
    arguments = (*PLAN, cluster, write("pod.json", pod))
    assert not run(*arguments).document["launch"]
    fuse = write("overlay.json", overlay("fuse", capacity={"smarter-devices/fuse": "1"}))
    assert len(run(*arguments, fuse).document["launch"]) == 1


M7A = only("karpenter.k8s.aws/instance-family", "m7a")


def test_of_types_at_one_price_the_plan_takes_what_the_list_has_cheapest(run: Run, cluster: str, write: Write) -> None:
    """By name the first of them is m7a.12xlarge."""
    for price in ("0", "0.01"):
        family = write("overlay.json", overlay("family", requirements=M7A, price=price))
        document = run(*PLAN, cluster, write("pod.json", pod_document()), family).document
        (launch,) = document["launch"]
        assert (launch["offering"]["instanceType"], document["cost"]["hourly"]) == ("m7a.large", float(price))


def test_a_cap_is_about_the_bill(run: Run, cluster: str, write: Write) -> None:
    """Or an overlay that says that nodes cost nothing would put it out of force."""
    free = write("overlay.json", overlay("free", price="0"))
    arguments = (*PLAN, cluster, write("pod.json", pod_document()), free, "--max-hourly")
    assert not run(*arguments, "0.01").document["launch"]
    assert len(run(*arguments, "1").document["launch"]) == 1


def test_an_overlay_that_is_for_nothing_is_named(run: Run, cluster: str, write: Write) -> None:
    """A misspelt value is not an error: another NodePool may have it tomorrow."""
    pod = write("pod.json", pod_document())
    for requirement in (only("karpenter.sh/nodepool", "nope"), only("karpenter.k8s.aws/instance-family", "m77a")):
        typo = write("typo.json", overlay("typo", requirements=requirement, price="1"))
        said = run(*PLAN, cluster, pod, typo).err
        assert "warning: NodeOverlay typo: it changes nothing: no NodePool has an offering that meets" in said
    unlimited = overlay("unlimited", price="1")
    del unlimited["spec"]["requirements"]
    said = run(*PLAN, cluster, pod, write("unlimited.json", unlimited)).err
    assert "spec.requirements: is missing: which instance types is it for? [] means all of them" in said


def test_overlays_that_count_nowhere_are_named(run: Run, cluster: str, write: Write) -> None:
    """One that cannot be read is an error, as it is for an API server."""
    twice = write("two.json", {"kind": "List", "items": [overlay("a", price="1"), overlay("b", price="2")]})
    pod = write("pod.json", pod_document())
    ended = run(*PLAN, cluster, pod, twice)
    assert "warning: NodeOverlay a takes no part: another of its weight is for the same instance types" in ended.err
    assert ended.document["cost"]["hourly"] == 2
    both = run(*PLAN, cluster, pod, write("bad.json", overlay("bad", price="1", priceAdjustment="+1")))
    assert both.status == 2
    assert "NodeOverlay bad: spec.price: cannot set both 'price' and 'priceAdjustment'" in both.err
    cpu = run(*PLAN, cluster, pod, write("bad.json", overlay("bad", capacity={"cpu": "1"})))
    assert "spec.capacity.cpu: only extended resources can be added" in cpu.err
