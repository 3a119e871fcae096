"""Deaths: instances that end before they have joined, or soon after, because of what they are made of.

A key that EC2 may not use, an image whose snapshot is gone, user data that shuts the instance down: every launch with
that node class and image ends alike, and the pods wait as before, so the next plan would launch again, hundreds of
times an hour. After two deaths launches are postponed for two minutes (``objects.annotations.deaths``). Then one launch
is tried, and nothing more is launched until it is known what becomes of it. If it dies as well, the next try comes
twice as late, up to an hour. A node that joins ends this (where others have died after that, one that has served for
ten minutes), and so do a change of the node class and another image.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.annotations.deaths import Deaths, deaths_of, has_joined_since
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import REGISTERED
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Hold:
    """Launches that are postponed.

    ``node_class``: its name. ``images``: the ids of the images that died. ``reason``: why nothing is launched, or,
    where ``is_tried``, nothing more than one node.
    """

    node_class: str
    images: frozenset[str]
    reason: Reason
    is_tried: bool = False


def launch_holds(snapshot: Snapshot) -> tuple[Hold, ...]:
    """The node classes and images whose instances die at launch. Costs nothing where none did."""
    causes = ((each, one) for each in snapshot.node_classes for one in deaths_of(each, snapshot.now) if one.is_cause)
    return tuple(_hold(node_class.metadata.name, deaths, snapshot) for node_class, deaths in causes)


def _hold(name: str, deaths: Deaths, snapshot: Snapshot) -> Hold:
    images, under_way = frozenset(deaths.images), _under_way(name, deaths, snapshot)
    if snapshot.now < deaths.until:
        return Hold(name, images, _reason(name, deaths, f"nothing more is launched before {_moment(deaths)}"))
    if under_way is not None:
        text = f"nothing more is launched until it is known whether {under_way.metadata.name} {_does(deaths)}"
        return Hold(name, images, _reason(name, deaths, text))
    return Hold(name, images, _reason(name, deaths, "one launch is tried first"), is_tried=True)


def _under_way(name: str, deaths: Deaths, snapshot: Snapshot) -> NodeClaim | None:
    """A claim of the class of which it is not known what becomes of it, and that may boot one of the images."""
    for claim in snapshot.managed_claims:
        is_concerned = claim.spec.node_class_ref.name == name and claim.status.image_id in ("", *deaths.images)
        is_tried = not claim.is_true(REGISTERED) or (deaths.joined and has_joined_since(deaths, claim))
        if is_concerned and is_tried and not claim.is_deleting:
            return claim
    return None


def _does(deaths: Deaths) -> str:
    return "stays" if deaths.joined else "joins"


def _moment(deaths: Deaths) -> str:
    return f"{deaths.until:%Y-%m-%dT%H:%M:%SZ}"


def _reason(name: str, deaths: Deaths, what: str) -> Reason:
    return Reason.of(
        ReasonCode.HELD_OFF,
        "instances of node class {node_class} die {when} ({why}); {what}",
        node_class=name,
        when="soon after they have joined" if deaths.joined else "at launch",
        why=deaths.why,
        what=what,
    )


def closed_images(holds: Iterable[Hold], node_class: str) -> Mapping[str, Reason]:
    """Of a node class, the images with which nothing is launched now, and why."""
    lasting = [hold for hold in holds if hold.node_class == node_class and not hold.is_tried]
    return {image: hold.reason for hold in lasting for image in hold.images}


def holds_tried(problem: Problem, launches: Sequence[Launch]) -> Sequence[Hold | None]:
    """For each launch the hold that it would try, if any. No more than one launch may try a hold."""
    trials = [hold for hold in launch_holds(problem.snapshot) if hold.is_tried]
    if not trials:
        return [None] * len(launches)
    classes, pools = problem.snapshot.classes_by_name, problem.snapshot.pools_by_name
    names = {hold.node_class for hold in trials}
    labels = {name: {kind.name: kind.labels for kind in problem.instance_types.get(name, ())} for name in names}

    def hold_of(launch: Launch) -> Hold | None:
        name = pools[launch.node_pool].spec.template.spec.node_class_ref.name
        known = labels.get(name, {})
        images = {classes[name].image_for(known[kind]) for kind in launch.instance_types if kind in known}
        return next((hold for hold in trials if hold.node_class == name and images & hold.images), None)

    return [hold_of(launch) for launch in launches]
