"""``joinery uninstall``: leave a cluster and its account as they were, with your own credentials."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from joinery.decisions.installation.removal import Disposal, Nodes
from joinery_cli.options import Format
from joinery_cli.output.visible import visible

if TYPE_CHECKING:
    from joinery.gateways.kubernetes.gateway import Objects
    from joinery_cli.uninstall.place import Place

#: What `--timeout` is without being said: budgets and grace periods are what a drain waits for.
_MINUTES = 60


def uninstall(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The EKS cluster to leave.")],
    nodes: Annotated[
        Nodes, typer.Option(help="retire drains and ends every node of ours; keep hands them to Karpenter.")
    ],
    bucket: Annotated[Disposal, typer.Option(help="The records of decisions.")] = Disposal.KEEP,
    crds: Annotated[
        Disposal, typer.Option(help="The custom resource definitions, with all NodePools and EC2NodeClasses.")
    ] = Disposal.KEEP,
    stack: Annotated[str | None, typer.Option(metavar="NAME", help="Default: joinery- and the cluster's name.")] = None,
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help="Default: the kubeconfig's, the environment's or the profile's."),
    ] = None,
    timeout: Annotated[int, typer.Option(metavar="MINUTES", min=1, help="How long it waits in all.")] = _MINUTES,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print what was done.")] = Format.TABLE,
) -> int:
    """Uninstall Joinery: webhook and schedules off, nodes kept or retired, and then everything it made removed.

    It uses your own credentials, waits no longer than --timeout, and may be stopped and given again at any step.
    """
    from joinery_cli.uninstall.steps import go_through

    place = _place(
        cluster, region, stack=stack, nodes=nodes, bucket=bucket, definitions=crds, minutes=timeout,
        is_table=output is not Format.JSON,
    )  # fmt: skip
    through = go_through(place)
    if output is Format.JSON:
        from joinery_cli.output.json import write

        steps = [{"step": one.step, "result": one.result, "seconds": round(one.seconds, 1)} for one in through]
        write({"cluster": cluster, "stack": place.stack, "nodes": str(nodes), "steps": steps})
    else:
        print(f"joinery has left {visible(cluster)}.")
    return 0


def _place(
    cluster: str, region: str | None, *, stack: str | None, minutes: int, is_table: bool, **chosen: Any
) -> "Place":
    import time

    from joinery.decisions.installation.requests import stack_name
    from joinery_cli.advice import reading_aws
    from joinery_cli.doctor.reaching import Boto, current_cluster
    from joinery_cli.sources import region_of
    from joinery_cli.uninstall.place import Place

    current, current_region = current_cluster()
    region = region_of(cluster, region, current_region if cluster == current else "")
    aws = Boto(region)
    with reading_aws(region):
        aws.ask("sts", "get_caller_identity")
    return Place(
        cluster=cluster, region=region, stack=stack or stack_name(cluster), aws=aws,
        objects=_objects(cluster, region, is_current=cluster == current),
        now=time.monotonic, sleep=time.sleep, deadline=time.monotonic() + minutes * 60,
        say=_print if is_table else _print_aside, **chosen,
    )  # fmt: skip


def _objects(cluster: str, region: str, *, is_current: bool) -> "Objects | None":
    """The cluster's objects; None where there is no such cluster."""
    from joinery.gateways.kubernetes.objects import KubernetesObjects
    from joinery.objects.errors import NotFoundError
    from joinery_cli.doctor.reaching import connected

    try:
        return KubernetesObjects(connected(cluster, region, is_current=is_current))
    except NotFoundError:
        return None


def _print(line: str) -> None:
    print(visible(line), flush=True)


def _print_aside(line: str) -> None:
    """Standard output is the document's alone."""
    print(visible(line), file=sys.stderr, flush=True)
