"""``joinery doctor``: look at an installation, and say what to do about it."""

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery_cli.options import Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from joinery_cli.doctor.cost import BillItem
    from joinery_cli.doctor.findings import Check, Finding
    from joinery_cli.doctor.site import Aws, Site

#: How many checks are made at a time.
_AT_A_TIME = 8


def doctor(
    cluster: Annotated[
        str | None,
        typer.Argument(metavar="CLUSTER", help="The EKS cluster. Default: the kubeconfig's."),
    ] = None,
    stack: Annotated[str | None, typer.Option(metavar="NAME", help="Default: joinery- and the cluster's name.")] = None,
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help="Default: the kubeconfig's, the environment's or the profile's."),
    ] = None,
    with_cost: Annotated[
        bool, typer.Option("--cost", help="Say also what the stack costs a month, by what it used in the last week.")
    ] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TABLE,
) -> int:
    """Look at stack, rights, cluster, queues, quotas, prices and alarms, and name a remedy for what is wrong.

    Nothing is changed. It reads with your own credentials, and says so where they do not suffice.

    Exit status: 0 where all is well, 1 where something is worth a look, 2 where something does not work.
    """
    from joinery_cli.doctor.findings import exit_status
    from joinery_cli.doctor.output import document, print_bill, print_findings

    site = _site(cluster, stack, region)
    findings = diagnosis(checks(), site)
    items, number = _bill(site, findings) if with_cost else ((), 0)
    if output is Format.JSON:
        from joinery_cli.output.json import write

        write(document(site, findings, items, nodes=number))
    else:
        print_findings(site, findings)
        if items:
            print_bill(items, nodes=number)
    return exit_status(findings)


def checks() -> "Sequence[Check]":
    """All of them, in the order in which they are printed."""
    from joinery_cli.doctor import allowed, configured, health, installed, reachable

    return (*installed.CHECKS, *reachable.CHECKS, *allowed.CHECKS, *configured.CHECKS, *health.CHECKS)


def _bill(site: "Site", findings: "list[Finding]") -> "tuple[tuple[BillItem, ...], int]":
    """What the stack costs, and for how many nodes; nothing, and a finding more, where that cannot be asked."""
    from joinery_cli.doctor.cost import bill
    from joinery_cli.doctor.findings import LACKING, warn
    from joinery_cli.doctor.usage import measured, nodes
    from joinery_cli.notices import working

    try:
        if site.home:
            raise ConfigurationError(f"functions and queues are those of {site.home.stack}: ask about its cluster")
        with working("adding up a week"):
            return tuple(bill(measured(site))), nodes(site)
    except JoineryError as error:
        findings.append(warn("cost", f"cannot be computed: {error}", LACKING))
        return (), 0


def diagnosis(checks: "Sequence[Check]", site: "Site") -> "list[Finding]":
    """All findings of these checks, made side by side."""
    from joinery.gateways.workers import Threads
    from joinery_cli.doctor.findings import examine
    from joinery_cli.notices import working

    done = count(1)
    with working("looking") as said:

        def counted(check: "Check") -> "Check":
            def look(site: "Site") -> "Iterator[Finding]":
                yield from check.look(site)
                said(f"{next(done)} of {len(checks)} checks")

            return replace(check, look=look)

        return examine([counted(check) for check in checks], site, Threads(_AT_A_TIME))


def _site(cluster: str | None, stack: str | None, region: str | None) -> "Site":
    from joinery.decisions.installation.requests import stack_name
    from joinery_cli.advice import reading_aws
    from joinery_cli.doctor.reaching import Boto, ClusterApi, Http, connected, current_cluster
    from joinery_cli.doctor.site import Site
    from joinery_cli.notices import working
    from joinery_cli.sources import moment, region_of

    current, current_region = current_cluster()
    name = cluster or current
    if not name:
        raise ConfigurationError("which cluster? The kubeconfig's context names none of EKS: joinery doctor CLUSTER")
    region = region_of(name, region, current_region if name == current else "")
    aws = Boto(region)
    # Without credentials, a network or the cluster every check would say the same.
    try:
        with reading_aws(region), working(f"asking AWS in {region}"):
            aws.ask("sts", "get_caller_identity")
            _refuse_a_missing_cluster(aws, name, region)
    except UnavailableError as error:
        raise ConfigurationError(str(error)) from error  # exit status 1 would say that it works
    return Site(
        cluster=name,
        region=region,
        stack=stack or stack_name(name),
        aws=aws,
        api=ClusterApi(lambda: connected(name, region, is_current=name == current)),
        web=Http(),
        now=lambda: moment(None),
    )


def _refuse_a_missing_cluster(aws: "Aws", cluster: str, region: str) -> None:
    try:
        aws.ask("eks", "describe_cluster", name=cluster)
    except NotFoundError as error:
        raise ConfigurationError(f"there is no EKS cluster {cluster} in {region}: is --region right?") from error
    except JoineryError:
        return  # the checks say that a right is missing
