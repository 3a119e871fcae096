"""How long HiGHS may take for one linear program, in work and by the caller's stopwatch."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Patience:
    """What one solve may use up. Without end, unless given.

    ``work``: simplex iterations times rows, which machines of any speed count alike. ``is_time_up``: asked at every
    iteration.
    ``ran_out``: whether some solve ended before its optimum because of that.
    """

    work: int | None = None
    is_time_up: Callable[[], bool] | None = None
    ran_out: bool = field(default=False, init=False)
