"""``python -m tools.controlplane FOLDER``: a control plane until Ctrl-C; prints the administrator's kubeconfig."""

import argparse
import contextlib
import signal
import sys
from pathlib import Path

from tools.controlplane.assets import MissingBinaryError
from tools.controlplane.plane import running


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a Kubernetes control plane on this machine until Ctrl-C.")
    parser.add_argument("folder", type=Path, help="an empty folder for its data, logs and kubeconfig files")
    parser.add_argument("--api-only", action="store_true", help="no scheduler and no controller-manager")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        with running(
            arguments.folder.resolve(), schedules=not arguments.api_only, controls=not arguments.api_only
        ) as plane:
            print(plane.kubeconfig(), flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except (MissingBinaryError, RuntimeError) as error:
        sys.exit(f"controlplane: {error}")


if __name__ == "__main__":
    main()
