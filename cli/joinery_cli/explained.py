"""``--explain POD``: which pods are meant, and the explanations as lines of text that table and page share."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from textwrap import wrap
from typing import TYPE_CHECKING

from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.packing import Launch, PlacedOffering
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, Subject
from joinery.objects.errors import ConfigurationError
from joinery_cli.notices import some_of
from joinery_cli.output.visible import visible
from joinery_cli.view.figures import count, money, natural
from joinery_cli.view.pool_shares import share_document

if TYPE_CHECKING:
    # Made for --explain alone.
    from joinery.decisions.scheduling.explain.explanation import (
        Explanation,
        NodesExplanation,
        PoolExplanation,
        RuleCount,
    )

WIDTH = 80
_RULE_WIDTH = 72
_NAMED_NODES = 3


# --- which pods ---


def pods_meant(asked: Iterable[str], problem: Problem) -> tuple[str, ...]:
    """The pending pods of these names, ``namespace/name`` or ``name`` alone.

    Raises ``ConfigurationError`` for one that is none.
    """
    waiting = [pod.key for pod in pending(problem, problem.snapshot.views)]
    return tuple(dict.fromkeys(_meant(name, waiting, problem) for name in asked))


def _meant(name: str, waiting: Sequence[str], problem: Problem) -> str:
    matching = [key for key in waiting if name in (key, key.partition("/")[2])]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ConfigurationError(f"--explain {name}: several pods have this name: {some_of(matching)}")
    there = next((pod for pod in problem.snapshot.pods if name in (pod.key, pod.metadata.name)), None)
    if there is not None:
        where = f"it is on node {there.spec.node_name}" if there.spec.node_name else "nothing is planned for it"
        raise ConfigurationError(
            f"--explain {name}: pod {there.key} is not pending: {where}{_suggested(name, waiting)}"
        )
    raise ConfigurationError(f"--explain {name}: there is no such pod{_suggested(name, waiting)}")


def _suggested(name: str, waiting: Sequence[str]) -> str:
    """What may have been meant: pods whose name begins like it, or is spelt like it."""
    if not waiting:
        return "; no pod is pending"
    begins = [key for key in waiting if key.startswith(name) or key.partition("/")[2].startswith(name)]
    close = get_close_matches(name, waiting, n=3) or [
        key for key in waiting if get_close_matches(name, [key.partition("/")[2]], n=1)
    ]
    listed = sorted(begins or close or waiting, key=natural)
    return f"; pending {'is' if len(listed) == 1 else 'are'} {some_of(listed)}"


# --- as text ---


def lines(explanation: "Explanation") -> Iterator[str]:
    """The explanation in lines of 80 columns; a longer one only where a name is longer. The first is its heading."""
    yield _heading(explanation)
    for sentence in _facts(explanation):
        yield from wrapped(sentence, "  ")
    yield from _of_nodes("other existing node" if explanation.existing else "existing node", explanation.standing)
    yield from _of_nodes("other new node" if explanation.launch else "new node", explanation.planned)
    for pool in explanation.pools:
        is_own = explanation.launch is not None and explanation.launch.node_pool == pool.node_pool
        yield from _of_pool(pool, "not on a node of its own" if is_own else "no")
    if explanation.rejected:
        yield ""
        yield "  NodePools that take no part"
        for reason in explanation.rejected:
            yield from wrapped(str(reason), "    ")


def _heading(explanation: "Explanation") -> str:
    if explanation.launch:
        return f"{explanation.pod} goes to new node {explanation.launch.name}"
    if explanation.existing:
        placement = explanation.existing
        return f"{explanation.pod} goes to existing node {placement.node or placement.node_claim}"
    return f"{explanation.pod} stays pending"


def _facts(explanation: "Explanation") -> Iterator[str]:
    if explanation.launch:
        yield _bought(explanation.launch)
        if explanation.share:
            yield f"Share on demand: {explanation.share}"
    elif explanation.existing:
        yield "Nodes that exist come first: they cost nothing more."
    for preference in explanation.dropped:
        yield f"Preference dropped: {preference}"
    told_below = {Subject.node_pool(pool.node_pool) for pool in explanation.pools}
    told_below |= {reason.subject for reason in explanation.rejected if reason.subject}
    for reason in explanation.reasons:
        if reason.subject not in told_below:
            yield str(reason)


def _bought(launch: Launch) -> str:
    others = len(launch.pods) - 1
    shared = f"shared with {count(others, 'other pod')}" if others else "for this pod alone"
    stand_ins = len(launch.instance_types) - 1
    more = f"; {count(stand_ins, 'other instance type')} may stand in" if stand_ins else ""
    return f"NodePool {launch.node_pool}: {_priced(launch.offering)}, {shared}{more}"


def _priced(offering: PlacedOffering) -> str:
    reserved = f" ({offering.reservation})" if offering.reservation else ""
    return f"{offering.instance_type}, {offering.capacity_type}{reserved} in {offering.zone}, {money(offering.price)}/h"


def _of_nodes(what: str, nodes: "NodesExplanation") -> Iterator[str]:
    if not nodes.nodes:
        return
    yield from _counted(count(nodes.nodes, what), "nodes left", nodes.rules)
    if nodes.fitting:
        for wish in nodes.preferences:
            yield from _with_figure(wish)
        more = f" and {len(nodes.fitting) - _NAMED_NODES} more" if len(nodes.fitting) > _NAMED_NODES else ""
        how = "would do without what it prefers" if any(not one.left for one in nodes.preferences) else "would do"
        yield from wrapped(f"{how}: {', '.join(nodes.fitting[:_NAMED_NODES])}{more}", "    ")


def _of_pool(pool: "PoolExplanation", no: str) -> Iterator[str]:
    weight = f", weight {pool.weight}" if pool.weight else ""
    yield from _counted(f"NodePool {pool.node_pool}{weight}", "instance types left", pool.rules, of=pool.types)
    if pool.offering:
        yield from wrapped(f"would do: a node for it alone, {_priced(pool.offering)}", "    ")
    for reason in pool.reasons:
        yield from wrapped(f"{no}: {reason.message}", "    ")


def _counted(title: str, what: str, rules: "Sequence[RuleCount]", of: int | None = None) -> Iterator[str]:
    """A heading, and a line for each rule with its figure at the right."""
    yield ""
    yield aligned(f"  {title}", what)
    if of is not None:
        yield aligned("    instance types of its node class", f"{of:,}")
    for rule in rules:
        yield from _with_figure(rule)


def _with_figure(rule: "RuleCount") -> Iterator[str]:
    *above, last = wrap(
        visible(rule.rule),
        _RULE_WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from above
    yield aligned(last, f"{rule.left:,}")


def aligned(left: str, right: str) -> str:
    """A line with a figure at its right end."""
    left = visible(left)
    return f"{left}{right:>{max(len(right) + 2, WIDTH - len(left))}}"


def wrapped(sentence: str, indent: str) -> list[str]:
    """A sentence in lines of the table's width; a name is never broken."""
    return wrap(
        visible(sentence), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


# --- as data ---


def explanation_document(explanation: "Explanation") -> dict[str, object]:
    """One entry of ``explanations`` in the Plan document."""
    return {
        "pod": explanation.pod,
        "node": _node(explanation),
        "reasons": [reason_document(reason) for reason in explanation.reasons],
        "dropped": explanation.dropped,
        "existingNodes": _nodes_document(explanation.standing),
        "newNodes": _nodes_document(explanation.planned),
        "nodePools": [_pool_document(pool) for pool in explanation.pools],
        "rejected": [reason_document(reason) for reason in explanation.rejected],
        **({"onDemandShare": share_document(explanation.share)} if explanation.share else {}),
    }


def _node(explanation: "Explanation") -> dict[str, object] | None:
    """The same names as in ``launch`` and ``existing``."""
    if explanation.launch:
        return {"launch": explanation.launch.name}
    if explanation.existing:
        return {"node": explanation.existing.node, "nodeClaim": explanation.existing.node_claim}
    return None


def reason_document(reason: Reason) -> dict[str, object]:
    """A reason for programs: its code, what refused the pod, and the figures that the message was made from."""
    subject = {"kind": reason.subject.kind, "name": reason.subject.name} if reason.subject else None
    return {"code": reason.code, "subject": subject, "message": reason.message, "figures": dict(reason.figures)}


def _nodes_document(nodes: "NodesExplanation") -> dict[str, object]:
    return {
        "nodes": nodes.nodes,
        "rules": _rules_document(nodes.rules),
        "fitting": nodes.fitting,
        "preferences": _rules_document(nodes.preferences),
    }


def _pool_document(pool: "PoolExplanation") -> dict[str, object]:
    offering = pool.offering
    return {
        "nodePool": pool.node_pool,
        "weight": pool.weight,
        "instanceTypes": pool.types,
        "rules": _rules_document(pool.rules),
        "offering": offering
        and {
            "instanceType": offering.instance_type,
            "zone": offering.zone,
            "capacityType": offering.capacity_type,
            "price": offering.price,
            **({"capacityReservation": offering.reservation} if offering.reservation else {}),
        },
        "reasons": [reason_document(reason) for reason in pool.reasons],
    }


def _rules_document(rules: "Sequence[RuleCount]") -> list[dict[str, object]]:
    return [{"rule": rule.rule, "left": rule.left} for rule in rules]
