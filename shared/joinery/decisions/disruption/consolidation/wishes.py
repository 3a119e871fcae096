"""From a choice of the optimiser to places for pods: what a trial begins with."""

import numpy as np

from joinery.decisions.disruption.consolidation.model import Model
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.scheduling.problem import WishedLaunch, Wishes


def wishes_of(model: Model, choice: Consolidation) -> Wishes:
    """Where the optimiser put pods like these.

    Pods of the same node follow each other, so that those for which new nodes are bought come from few old ones.
    """
    nodes: dict[str, str] = {}
    gone = np.flatnonzero(~choice.keep)
    moving = [
        [pod for index in gone for pod in model.pods.get((item, int(index)), ())] for item in range(len(choice.inflow))
    ]
    for item, pods in enumerate(moving):
        for index in choice.inflow[item].nonzero()[0]:
            count = int(choice.inflow[item, index])
            nodes |= dict.fromkeys(pods[:count], model.nodes[index].node)
            del pods[:count]
    launches = []
    for pattern in choice.new:
        for _ in range(pattern.copies):
            dealt = []
            for item in np.flatnonzero(pattern.counts):
                count = int(pattern.counts[item])
                dealt.append((model.domains[item], tuple(moving[item][:count])))
                del moving[item][:count]
            launches.append(WishedLaunch(*model.new[pattern.bin_type - len(model.nodes)], tuple(dealt)))
    return Wishes(nodes, tuple(launches))
