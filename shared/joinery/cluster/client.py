"""The light half of the official Kubernetes client: its configuration and its REST transport.

Importing ``kubernetes`` runs a package that pulls in OAuth, YAML, websockets, requests and the dynamic client: 0.65 s
of a cold start, of which a request over TLS with a bearer token needs 0.05 s (measured with kubernetes 37 and urllib3
loaded). The modules that matter do not need that package to have run, so they are imported below empty stand-ins for
it. The stand-ins are gone afterwards: who imports ``kubernetes`` later, as the reader of kubeconfig files does, gets
all of it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# Packages whose __init__ only gathers what lies below them.
_GATHERERS = ("kubernetes", "kubernetes.utils")


@cache
def configuration_type() -> Any:
    """``kubernetes.client.Configuration``."""
    with _gatherers_left_out():
        return importlib.import_module("kubernetes.client.configuration").Configuration


@cache
def rest_type() -> Any:
    """``kubernetes.client.rest.RESTClientObject``: a urllib3 pool with a configuration's TLS and proxy settings."""
    with _gatherers_left_out():
        return importlib.import_module("kubernetes.client.rest").RESTClientObject


@contextmanager
def _gatherers_left_out() -> Iterator[None]:
    added = [name for name in _GATHERERS if name not in sys.modules]
    for name in added:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        for name in added:
            sys.modules.pop(name, None)
