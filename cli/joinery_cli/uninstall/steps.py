"""All steps in their order, and how they are gone through.

The order is the point. The webhook and all that buys go first, so that nothing new begins. Whoever drains works until
no node is left to drain. What instances need goes after them, the stack takes the functions, and rights go last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from joinery_cli.uninstall import account, nodes
from joinery_cli.uninstall.place import Place

Work = Callable[[Place], str]


@dataclass(frozen=True)
class Step:
    """``work`` does what is still to be done, and says what became of it."""

    name: str
    work: Work


@dataclass(frozen=True)
class Done:
    """A step that is through. ``seconds``: how long it took."""

    step: str
    result: str
    seconds: float


STEPS: Sequence[Step] = (
    Step("what becomes of nodes", nodes.say_what_becomes_of_nodes),
    Step("webhook", nodes.stop_the_webhook),
    Step("whatever buys or disrupts", nodes.stop_buying),
    Step("nodes", nodes.settle_nodes),
    Step("whatever drains", nodes.stop_everything),
    Step("hand-over", nodes.hand_nodes_over),
    Step("node classes", nodes.release_node_classes),
    Step("instances without a claim", nodes.end_instances),
    Step("launch templates", account.remove_launch_templates),
    Step("instance profiles", account.remove_instance_profiles),
    Step("stack", account.remove_stack),
    Step("role of the nodes", account.say_what_nodes_keep),
    Step("bucket", account.remove_bucket),
    Step("rights in the cluster", account.remove_rights),
    Step("definitions", account.remove_definitions),
)


def go_through(place: Place, steps: Sequence[Step] = STEPS) -> list[Done]:
    """Every step, one after the other. Raises what a step raises; those before it are through."""
    through = []
    for step in steps:
        place.say(f"{step.name} ...")
        began = place.now()
        result = step.work(place)
        through.append(Done(step.name, result, place.now() - began))
        place.say(f"{step.name}: {result}")
    return through
