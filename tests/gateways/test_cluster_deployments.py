"""What reading the owners of pods and restarting a Deployment promises, in every form of the ``Cluster`` gateway."""

from datetime import timedelta

import pytest

from joinery.decisions.termination.surge import restarted
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.labels import RESTARTED_AT, REVISION
from simulator import builders
from simulator.kubernetes.resources import with_fields, with_metadata
from tests.gateways.clusters import START, Form

WEB = builders.deployment("web", replicas=2)


def test_a_replica_set_says_whose_it_is_and_of_which_rollout(form: Form) -> None:
    """All that a surge asks of it."""
    owned = builders.replica_set("web-1", revision="3")
    form.put(with_metadata(owned, owner_references=[]))
    read = form.cluster.replica_set("default", "web-1")
    assert (read.metadata.name, read.metadata.annotations[REVISION]) == ("web-1", "3")


def test_a_deployment_says_how_it_rolls_out(form: Form) -> None:
    """With the defaults that an API server fills in, or the same meaning without them."""
    form.put(WEB)
    read = form.cluster.deployment("default", "web")
    assert (read.spec.replicas, read.spec.paused, read.spec.strategy.type) == (2, False, "RollingUpdate")
    assert read.metadata.generation >= 1


def test_a_restart_changes_the_pod_template_and_nothing_else(form: Form) -> None:
    """As ``kubectl rollout restart`` does it: the generation grows, and what others wrote stays."""
    template = with_metadata(WEB.spec.template, annotations={"kept": "y"})
    form.put(with_fields(WEB, spec=with_fields(WEB.spec, template=template)))
    before = form.cluster.deployment("default", "web")

    form.cluster.restart(before, restarted(before, START))

    after, stored = form.cluster.deployment("default", "web"), form.stored(WEB)
    assert after.spec.template.metadata.annotations == {"kept": "y", RESTARTED_AT: "2026-11-21T12:00:00+00:00"}
    assert after.metadata.generation == before.metadata.generation + 1
    assert stored.spec.template.spec.containers[0].name == "main"
    assert stored.spec.replicas == 2


def test_a_deployment_that_somebody_wrote_to_is_not_restarted(form: Form) -> None:
    """What was decided from it is out of date."""
    form.put(WEB)
    before = form.cluster.deployment("default", "web")
    form.cluster.restart(before, restarted(before, START))
    with pytest.raises(ConflictError):
        form.cluster.restart(before, restarted(before, START + timedelta(seconds=1)))


def test_owners_that_are_gone_are_not_found(form: Form) -> None:
    """Their pods may still be there."""
    form.put(WEB)
    before = form.cluster.deployment("default", "web")
    form.remove(form.stored(WEB))
    for read in (form.cluster.replica_set, form.cluster.deployment):
        with pytest.raises(NotFoundError):
            read("default", "web")
    with pytest.raises(NotFoundError):
        form.cluster.restart(before, restarted(before, START))
