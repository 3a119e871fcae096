"""The least that a small task can cost: proven, and often with the nodes that cost just that.

Three looks, each at what the one before has left. The placement program (``placement``) proves a bound with fractions of nodes. At its
prices a kind, or an item on a kind, that costs more than the gap to the best plan known is in no better one. If the nodes that could be
in one can be listed (``enumeration``), a program over them knows what really fits on a node; if not, whole numbers of nodes are
sought in the placement program.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.branch_and_bound import CLOSE, Prover, Question
from joinery.optimizer.bounds.compact import Placement
from joinery.optimizer.bounds.duality import reduced, signed
from joinery.optimizer.bounds.enumeration import TooManyError, patterns, prices_of
from joinery.optimizer.bounds.pattern_program import Listing
from joinery.optimizer.instance.patterns import Patterns, Shape
from joinery.optimizer.instance.side_constraints import Task

MOST_PAIRS = 4_000
"""Tasks of no more pairs of an item and a kind that admits it are small."""
MOST_PODS = 200
_ALLOWANCE = 150.0
"""About milliseconds of a slow core that branching may take."""
_PACE = 250
"""So many coefficients does a slow core solve again in a millisecond."""
_FEWEST = 4


@dataclass(frozen=True, eq=False)
class Answer:
    """Nothing costs less than ``bound``. ``shapes``: nodes that cost just that, if they cost less than the plan that was known and were
    found. ``is_exact``: either the plan that was known or other nodes cost just that.
    """

    bound: float
    shapes: tuple[Shape, ...] | None = None
    is_exact: bool = False


def is_small(task: Task) -> bool:
    """Whether an answer is worth the time: a node more or less is a large part of a plan for few pods."""
    return int(task.wanted.sum()) <= MOST_PODS and int(task.lot.admits.sum()) <= MOST_PAIRS


def least(task: Task, cutoff: float, *, is_thorough: bool = True) -> Answer:
    """The least that the task can cost, or as much as could be proven of it; ``cutoff``: the price of a plan that is known.
    ``is_thorough``: also where nodes cannot be listed.
    """
    placement, prover = _looked_at(task, cutoff)
    bound = prover.root()
    if bound >= cutoff * (1 - CLOSE):
        return Answer(bound, is_exact=True)
    kinds, admits = _left(placement, prover.prices, cutoff - bound)
    some = task.among(kinds, admits)
    placement, prover = _looked_at(some, cutoff)
    bound = min(max(bound, prover.root()), cutoff)
    try:
        listed = patterns(placement, prices_of(placement, prover.prices))
    except TooManyError:
        return Answer(max(bound, prover.prove().bound) if is_thorough else bound)
    answer = _over_patterns(some, listed, cutoff)
    shapes = answer.shapes and tuple(Shape(int(kinds[shape.kind]), shape.pods, shape.times) for shape in answer.shapes)
    return Answer(max(bound, answer.bound), shapes, answer.is_exact)


def _looked_at(task: Task, cutoff: float) -> tuple[Placement, Prover]:
    placement = Placement(task, cutoff)
    return placement, _prover(placement.question, cutoff)


def _prover(question: Question, cutoff: float) -> Prover:
    return Prover(question, cutoff, max(_FEWEST, int(_ALLOWANCE * _PACE / len(question.program.values))))


def _left(placement: Placement, prices: Floats, gap: float) -> tuple[Ints, Mask]:
    """The kinds that could be in a better plan, and what they could hold there: one node, or one pod, may not cost the gap."""
    program = placement.question.program
    beyond = reduced(program, signed(program, prices))
    kinds: Ints = np.flatnonzero(beyond[: placement.width] <= gap * (1 + 1e-6) + 1e-9)
    admits = np.zeros(placement.task.lot.admits.shape, dtype=np.bool_)
    near = beyond[placement.width : placement.width + placement.pairs] <= gap * (1 + 1e-6) + 1e-9
    admits[placement.items[near], placement.kinds[near]] = True
    return kinds, admits[:, kinds]


def _over_patterns(task: Task, listed: Patterns, cutoff: float) -> Answer:
    """The least price of these nodes, in whole numbers."""
    program = Listing(task, listed, cutoff)
    proof = _prover(program.question, cutoff).prove()
    if proof.bound >= cutoff * (1 - CLOSE):
        return Answer(proof.bound, is_exact=True)
    nodes = None if proof.values is None else program.nodes(proof.values)
    return Answer(proof.bound, nodes, nodes is not None)
