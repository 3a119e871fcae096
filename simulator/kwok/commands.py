"""``joinery kwok``: Joinery at work, live, on a cluster without a cloud."""

from pathlib import Path
from typing import Annotated, Optional

import typer


def kwok(
    kubeconfig: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="How to reach the cluster. Default: $KUBECONFIG, else ~/.kube/config."),
    ] = None,
    context: Annotated[Optional[str], typer.Option(help="Of the kubeconfig.")] = None,  # noqa: UP045
    demo: Annotated[
        bool, typer.Option("--demo", help="Scale a Deployment up and down, show what happens, and clean up.")
    ] = False,
    settings: Annotated[str, typer.Option(help="Of the functions, as the stack's: Name=value; ...")] = "",
) -> None:
    """Run the functions here, on a kind or kwok cluster: its nodes are Node objects, as kwok's are, and cost nothing.

    Creates Karpenter's definitions and a KWOKNodeClass and NodePool named default where there are none. Ctrl-C ends it.
    Pods on these nodes only seem to run. Use a cluster that nobody else uses.
    """
    from joinery.gateways.kubernetes.auth import from_kubeconfig
    from joinery.gateways.kubernetes.transport import Transport
    from simulator.kwok.show import play, show_demo

    transport = Transport(from_kubeconfig(kubeconfig, context=context))
    (show_demo if demo else play)(transport, settings)
