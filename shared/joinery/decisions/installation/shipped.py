"""The manifests that come with this release, read from the package.

They lie in the package and nowhere else: a layer ships whatever lies there, whether ``make deploy`` or a plain
``sam build`` made it, and the command line has them too.
"""

from functools import cache
from importlib.resources import files

from joinery.objects.kubernetes.references import Document

#: The group of all doors, to which their IAM roles are mapped, and which rbac.yaml names.
GROUP = "joinery"
#: Those that talk to the cluster, as the names of their functions begin.
DOORS = ("Provisioning", "Interruption", "Expiration", "Disruption", "Lifecycle")
#: The files of rights, in the order in which a person applies them.
RIGHTS = ("fences.yaml", "rbac.yaml", "pods.yaml")


@cache
def definitions() -> tuple[Document, ...]:
    """The CustomResourceDefinitions, by name."""
    folder = files("joinery.decisions.installation") / "manifests" / "crds"
    texts = [entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return tuple(
        sorted((one for text in texts for one in _documents(text)), key=lambda one: str(one["metadata"]["name"]))
    )


@cache
def rights() -> tuple[Document, ...]:
    """Roles, their bindings, the admission policies that fence them in, and the Lease that the doors may not make."""
    return tuple(document for name in RIGHTS for document in _documents(_text(name)))


@cache
def webhook() -> Document:
    """The webhook configuration, with a placeholder for the address."""
    return _documents(_text("webhook.yaml"))[0]


def _text(name: str) -> str:
    return (files("joinery.decisions.installation") / "manifests" / name).read_text(encoding="utf-8")


def _documents(text: str) -> tuple[Document, ...]:
    # Imported here: no other function pays for it.
    import yaml

    return tuple(document for document in yaml.load_all(text, yaml.CSafeLoader) if document)


def groups_of(door: str) -> tuple[str, ...]:
    """The groups of a door: what all doors may do, and what it may do beside."""
    return GROUP, f"{GROUP}-{door.lower()}"
