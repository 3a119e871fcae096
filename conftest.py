"""For tests of every folder: a real Kubernetes API server and control plane,
a real browser, `make soak`, how tests are dealt out to workers, and two profiles for properties.
"""

from hypothesis import HealthCheck, Phase, settings

pytest_plugins = ("tests.browser.fixtures", "tests.controlplane.fixtures", "tests.distribution", "tests.fire.soak")

# The gate tries the same examples every time, so that no change fails by chance for what another did, and does not
# shrink what fails, which may take five minutes a property. As they are always the same, few do: half of Hypothesis'
# usual hundred. `make fuzz` seeks new ones. A busy machine is no wrong answer, in either.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "gate", _PATIENT, max_examples=50, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("fuzz", _PATIENT, max_examples=2500, print_blob=True)
settings.load_profile("gate")
