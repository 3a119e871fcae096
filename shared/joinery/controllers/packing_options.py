"""How the doors plan: the policies of a packing, from the settings."""

from joinery.decisions.scheduling.problem import Options
from joinery.objects.caps import Caps
from joinery.objects.policies import MinValuesPolicy, PreferencePolicy
from joinery.objects.settings import Settings


def packing_options(settings: Settings, caps: Caps, time_limit: float | None = None) -> Options:
    """``caps``: what the run may still buy. ``time_limit``: seconds after which the best plan so far is taken."""
    return Options(
        node_size=settings.node_size,
        respect_preferences=settings.preference_policy == PreferencePolicy.RESPECT,
        best_effort_min_values=settings.min_values_policy == MinValuesPolicy.BEST_EFFORT,
        caps=caps,
        time_limit=time_limit,
    )
