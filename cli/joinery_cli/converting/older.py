"""NodePools and classes of v1 in one of the older APIs."""

from collections.abc import Callable, Mapping, Sequence

from joinery.objects.karpenter.legacy import called_now
from joinery_cli.converting.earliest import earliest_provisioner
from joinery_cli.converting.earliest_classes import Cluster
from joinery_cli.converting.older_classes import NoEquivalentError, beta_class, node_template
from joinery_cli.converting.older_pools import beta_pool, provisioner
from joinery_cli.converting.written import (
    Written,
    applied,
    noted_after_earliest,
    noted_after_provisioners,
    noted_without_profile,
)
from joinery_cli.options import Api

#: What an object of that API has as its ``apiVersion``.
_VERSIONS: Mapping[Api, Sequence[str]] = {
    Api.V1BETA1: ("karpenter.sh/v1beta1", "karpenter.k8s.aws/v1beta1"),
    Api.V1ALPHA5: ("karpenter.sh/v1alpha5", "karpenter.k8s.aws/v1alpha1"),
    Api.V1ALPHA4: ("karpenter.sh/v1alpha4",),
    Api.V1ALPHA3: ("karpenter.sh/v1alpha3",),
}
#: Of one object; None for a class that stands in the pools.
_Conversion = Callable[[Written], Written | None]


def in_older(objects: Sequence[Written], api: Api, cluster: Cluster | None = None) -> list[Written]:
    """The objects of v1 in that API, classes first; what was of that API in the files is as it was.

    ``cluster``: what Provisioners of v1alpha3 and v1alpha4 say of it. Raises ``NoEquivalentError`` naming the object.
    """
    same = [one.source for one in objects if _is_of(api, one)]
    made = [Written(applied(source), source=source) for source in same]
    is_earliest = api in (Api.V1ALPHA3, Api.V1ALPHA4)
    convert = _with_classes(objects, api, cluster or Cluster()) if is_earliest else _apart(objects, api)
    for one in objects:
        # A class for each kubelet, or of a provider block, stands in what it was made of.
        if any(one.source is source for source in same):
            continue
        try:
            converted = convert(one)
        except NoEquivalentError as error:
            raise NoEquivalentError(f"{one.called}: {error}") from error
        made += [converted] if converted else []
    return sorted(made, key=lambda one: (one.is_pool, one.called))


def _is_of(api: Api, one: Written) -> bool:
    """Whether it was of that API, and is no class that stood in a Provisioner."""
    is_own = called_now(one.source.get("kind", "")) == one.document["kind"]
    return is_own and one.source["apiVersion"] in _VERSIONS[api]


def _class_of(pool: Written) -> str:
    return str(pool.document["spec"]["template"]["spec"]["nodeClassRef"]["name"])


def _apart(objects: Sequence[Written], api: Api) -> _Conversion:
    """To pools and classes as objects of their own. Kubelets are the pools' there."""
    kubelets = {one.name: one.document["spec"].get("kubelet") or {} for one in objects if not one.is_pool}
    referred = {_class_of(one) for one in objects if one.is_pool}

    def convert(one: Written) -> Written:
        if one.is_pool:
            kubelet = kubelets.get(_class_of(one), {})
            if api is Api.V1BETA1:
                return beta_pool(noted_after_provisioners(one), kubelet)
            return provisioner(noted_after_earliest(one), kubelet)
        if kubelets[one.name] and one.name not in referred:
            one = one.noting("spec.kubelet is dropped: pools have it there, and none of these refers to the class")
        return beta_class(noted_without_profile(one)) if api is Api.V1BETA1 else node_template(one)

    return convert


def _with_classes(objects: Sequence[Written], api: Api, cluster: Cluster) -> _Conversion:
    """To Provisioners that say themselves what their instances are made of."""
    classes = {one.name: one for one in objects if not one.is_pool}
    referred = {_class_of(one) for one in objects if one.is_pool}

    def convert(one: Written) -> Written | None:
        if one.is_pool:
            return earliest_provisioner(one, classes.get(_class_of(one)), api, cluster)
        if one.name not in referred:
            raise NoEquivalentError(f"{api} has classes in its Provisioners alone, and no NodePool here refers to it")
        return None

    return convert
