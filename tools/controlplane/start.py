"""Start a Kubernetes control plane without kubelets and wait until it is ready.

    python3 start.py FOLDER        # binaries from $KUBEBUILDER_ASSETS; prints FOLDER/kubeconfig; Ctrl-C or SIGTERM stops all of it

A working model of the flags that are needed, not a test fixture.
"""

import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

ASSETS = pathlib.Path(os.environ["KUBEBUILDER_ASSETS"])
TOKEN = "admin-token"
FAST = ["--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000"]
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: local, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: {token}}}}}]
contexts: [{{name: local, context: {{cluster: local, user: admin}}}}]
current-context: local
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(folder, name, *flags):
    log = (folder / f"{name}.log").open("wb")
    return subprocess.Popen([ASSETS / name, *map(str, flags)], stdout=log, stderr=subprocess.STDOUT)


def is_ready(server):
    request = urllib.request.Request(f"{server}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.HTTPError):
        return False


def main(folder):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder.mkdir(parents=True, exist_ok=True)
    etcd, peer, api = free_port(), free_port(), free_port()
    server, key, kubeconfig = f"https://127.0.0.1:{api}", folder / "service-account.key", folder / "kubeconfig"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    kubeconfig.write_text(KUBECONFIG.format(server=server, token=TOKEN))
    running = [
        start(
            folder,
            "etcd",
            "--data-dir",
            folder / "etcd",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
        ),
        # No service-account admission: there is no kubelet that would mount tokens. RBAC stays on.
        start(
            folder,
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--cert-dir",
            folder / "certs",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={api}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-issuer={server}",
            "--service-account-key-file",
            key,
            "--service-account-signing-key-file",
            key,
            "--token-auth-file",
            folder / "tokens.csv",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--disable-admission-plugins=ServiceAccount",
        ),
    ]
    try:
        while not is_ready(server):
            if any(process.poll() is not None for process in running):
                sys.exit(f"the control plane did not start: see {folder}/*.log")
            time.sleep(0.1)
        running += [
            start(folder, "kube-scheduler", "--kubeconfig", kubeconfig, f"--secure-port={free_port()}", *FAST),
            # Nodes here have no kubelet: without these controllers they stay Ready for as long as a test says so. But admission
            # taints every new node node.kubernetes.io/not-ready: whoever plays the kubelet takes that taint off.
            start(
                folder,
                "kube-controller-manager",
                "--kubeconfig",
                kubeconfig,
                f"--secure-port={free_port()}",
                *FAST,
                "--service-account-private-key-file",
                key,
                "--controllers=*,-node-lifecycle-controller,-node-ipam-controller,-taint-eviction-controller",
            ),
        ]
        print(kubeconfig, flush=True)
        while all(process.poll() is None for process in running):
            time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
