"""The command itself: files in, objects out, and above each what changes its meaning."""

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.objects.errors import ConfigurationError
from joinery_cli.options import Api, Files, MoreFiles, Recursive

if TYPE_CHECKING:
    from joinery_cli.converting.written import Document, Written


class Output(StrEnum):
    """How objects are printed."""

    YAML = "yaml"
    JSON = "json"


def convert(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    to: Annotated[Api, typer.Option("--to", help="The API of Karpenter to write them in.")] = Api.V1,
    cluster_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The cluster, for Provisioners of v1alpha3 and v1alpha4.")
    ] = None,
    cluster_endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="Of its API server, for Provisioners of v1alpha3 and v1alpha4.")
    ] = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print them.")] = Output.YAML,
) -> None:
    """Write NodePools and node classes of any of Karpenter's APIs in another one, and say what changes their meaning.

    Reads Provisioners of v1alpha3, v1alpha4 and v1alpha5 with their AWSNodeTemplates, and NodePools and EC2NodeClasses
    of v1beta1 and v1. Nothing is written to a cluster. Notes stand above each object in YAML; with -o json they are on
    standard error.
    """
    from joinery_cli.converting.earliest_classes import Cluster
    from joinery_cli.converting.older import in_older
    from joinery_cli.converting.older_classes import NoEquivalentError
    from joinery_cli.converting.written import in_v1, noted_in_v1
    from joinery_cli.notices import working

    paths = [*(files or ()), *(more_files or ())]
    if not paths:
        raise ConfigurationError("which objects? joinery convert -f FILE, or -f - for standard input")
    with working("reading the files"):
        objects = in_v1(_documents(paths, recursive=recursive))
    if not objects:
        raise ConfigurationError("no NodePool, Provisioner or node class in these files")
    try:
        cluster = Cluster(cluster_name or "", cluster_endpoint or "")
        made = [noted_in_v1(one) for one in objects] if to is Api.V1 else in_older(objects, to, cluster)
    except NoEquivalentError as error:
        raise ConfigurationError(str(error)) from error
    if output is Output.JSON:
        _print_json(made)
    else:
        _print_yaml(made)


def _print_json(made: "Sequence[Written]") -> None:
    """A List on standard output, and the notes on standard error."""
    import json

    from joinery_cli.notices import note, tell

    items = [one.document for one in made]
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout, indent=2)
    print()
    tell(note(line) for one in made for line in one.lines)


def _print_yaml(made: "Sequence[Written]") -> None:
    """One document after the other, each below its notes."""
    import yaml

    from joinery_cli.output.visible import line_of

    for index, one in enumerate(made):
        if index:
            print("---")
        for line in one.lines:
            print(line_of(f"# {line}"))
        yaml.safe_dump(one.document, sys.stdout, sort_keys=False, width=120)


def _documents(paths: Iterable[str], *, recursive: bool) -> "list[Document]":
    """Karpenter's objects in these files. Raises ``ConfigurationError`` with all that is wrong with them."""
    import msgspec

    from joinery.objects.kubernetes.decoding import without_nulls
    from joinery_cli.reading.inputs import collected

    inputs = collected(paths, recursive=recursive)
    listed = (*inputs.legacy.values(), *inputs.of_karpenter.values())
    return [without_nulls(msgspec.json.decode(one.raw)) for one in listed]
