"""Published figures that made-up days are drawn from."""

import math
import random
from collections.abc import Sequence

#: Seconds that a pod ran, in steps of 5 % from the shortest to the longest but one: 7,255 pods of Alibaba's
#: cluster-trace-gpu-v2023 (`openb_pod_list_default.csv`, Weng et al., USENIX ATC 2023).
_LIFETIMES = (
    4, 50, 73, 112, 146, 175, 210, 267, 356, 492, 616, 810, 1001, 1255, 1674, 2246, 3204, 4328, 7764, 18162,
)  # fmt: skip
#: The last 5 % run for up to weeks; a day shows no more of them than this.
_LONGEST = 2 * 86400
#: What services ask for, in millicores, and how often: small ones are common.
_CPUS = ((100, 6), (250, 10), (500, 12), (750, 5), (1000, 9), (1500, 4), (2000, 6), (3000, 2), (4000, 2))
#: MiB for a core: the ratios of EC2's c, m and r instance types.
_RATIOS = (2048, 4096, 8192)
_HOUR = 3600
#: The quietest hour of the day, and the share of the peak's load that is left then.
_NIGHT_HOUR, _NIGHT = 4.0, 0.35


def lifetime(chance: random.Random) -> int:
    """Seconds that a job runs."""
    place = chance.random() * len(_LIFETIMES)
    index = int(place)
    low = _LIFETIMES[index]
    high = _LIFETIMES[index + 1] if index + 1 < len(_LIFETIMES) else _LONGEST
    # Between two steps by ratio, because lifetimes spread over four orders of magnitude.
    return round(low * math.exp((place - index) * math.log(high / low)))


def size(chance: random.Random) -> tuple[int, int]:
    """Millicores and MiB that a pod asks for."""
    cpu = _pick(chance, _CPUS)
    memory = cpu / 1000 * chance.choice(_RATIOS) * chance.uniform(0.6, 1.0)
    return cpu, max(64, int(memory) // 16 * 16)


def load(second: int) -> float:
    """The share of its peak that people's use of a service has at that second of the day.

    One slow wave with its trough at four in the morning, as services of one region have it (Tirmazi et al., "Borg: the
    Next Generation", EuroSys 2020, shows the same period).
    """
    wave = 0.5 - 0.5 * math.cos((second / _HOUR - _NIGHT_HOUR) * math.pi / 12)
    return _NIGHT + (1 - _NIGHT) * wave


def _pick(chance: random.Random, weighted: Sequence[tuple[int, int]]) -> int:
    return chance.choices([value for value, _ in weighted], weights=[weight for _, weight in weighted])[0]
