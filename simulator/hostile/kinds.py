"""Kinds of hostile pods, each with the sizes that have been seen to hurt."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from simulator.hostile import many_pods, one_pod, storage
from simulator.hostile.pods import Document

Make = Callable[[int], Iterator[Document]]


@dataclass(frozen=True)
class Kind:
    """``make``: the objects for a size. ``small``: a size for every run of the tests; ``sizes``: those of the sweep."""

    make: Make
    small: int
    sizes: tuple[int, ...]


KINDS: Mapping[str, Kind] = {
    # --- one pod that names much ---
    "resources": Kind(one_pod.resources, 60, (1500, 4000)),
    "containers": Kind(one_pod.containers, 30, (1000,)),
    "init-containers": Kind(one_pod.init_containers, 30, (1000,)),
    "host-ports": Kind(one_pod.host_ports, 50, (1000, 5000)),
    "tolerations": Kind(one_pod.tolerations, 50, (1000, 5000)),
    "node-selector": Kind(one_pod.node_selector, 50, (1000, 10_000)),
    "node-affinity-values": Kind(one_pod.node_affinity_values, 200, (5000, 50_000)),
    "node-affinity-values-met": Kind(one_pod.node_affinity_values_met, 200, (5000, 50_000)),
    "node-affinity-exclusions": Kind(one_pod.node_affinity_exclusions, 200, (5000, 50_000)),
    "node-affinity-expressions": Kind(one_pod.node_affinity_expressions, 50, (1000, 10_000)),
    "node-affinity-terms": Kind(one_pod.node_affinity_terms, 50, (1000, 5000)),
    "node-affinity-fields": Kind(one_pod.node_affinity_fields, 50, (1000, 10_000)),
    "node-preferences": Kind(one_pod.node_preferences, 50, (1000, 5000)),
    "node-preference-values": Kind(one_pod.node_preference_values, 200, (5000, 50_000)),
    "soft-spreads": Kind(one_pod.soft_spreads, 30, (1000, 3000)),
    "soft-spread-keys": Kind(one_pod.soft_spread_keys, 30, (1000, 3000)),
    "hard-spreads": Kind(one_pod.hard_spreads, 30, (1000, 3000)),
    "hard-spread-keys": Kind(one_pod.hard_spread_keys, 30, (1000, 3000)),
    "spread-selector-values": Kind(one_pod.spread_selector_values, 200, (5000, 50_000)),
    "affinity-terms": Kind(one_pod.affinity_terms, 30, (1000, 3000)),
    "anti-affinity-terms": Kind(one_pod.anti_affinity_terms, 30, (1000, 3000)),
    "pod-preferences": Kind(one_pod.pod_preferences, 30, (1000, 3000)),
    "affinity-selector-values": Kind(one_pod.affinity_selector_values, 200, (5000, 50_000)),
    "affinity-namespaces": Kind(one_pod.affinity_namespaces, 200, (5000, 50_000)),
    "match-label-keys": Kind(one_pod.match_label_keys, 50, (1000, 5000)),
    "ephemeral-volumes": Kind(one_pod.ephemeral_volumes, 50, (500, 2000)),
    "claims": Kind(one_pod.claims, 50, (500, 2000)),
    "long-words": Kind(one_pod.long_words, 1000, (100_000, 250_000)),
    "labels": Kind(one_pod.labels, 50, (1000, 10_000)),
    "etcd-limit": Kind(one_pod.etcd_limit, 20_000, (1_400_000,)),
    # --- many pods ---
    "equal": Kind(many_pods.equal, 50, (1000, 10_000)),
    "distinct-requests": Kind(many_pods.distinct_requests, 20, (1000, 5000)),
    "urgent": Kind(many_pods.urgent, 20, (1000, 5000)),
    "node-each": Kind(many_pods.node_each, 20, (1000, 5000)),
    "daemon-sets": Kind(many_pods.daemon_sets, 5, (10, 200)),
    "distinct-labels": Kind(many_pods.distinct_labels, 20, (1000, 5000)),
    "distinct-namespaces": Kind(many_pods.distinct_namespaces, 20, (1000, 5000)),
    "hopeless-selectors": Kind(many_pods.hopeless_selectors, 20, (1000, 5000)),
    "hopeless-resources": Kind(many_pods.hopeless_resources, 20, (1000, 5000)),
    "hopeless-requests": Kind(many_pods.hopeless_requests, 20, (1000, 5000)),
    "preferences": Kind(many_pods.preferences, 10, (150, 600)),
    "preferences-of-labels": Kind(many_pods.preferences_of_labels, 10, (150, 600)),
    "repelling": Kind(many_pods.repelling, 15, (450, 1800)),
    "repelling-by-zone": Kind(many_pods.repelling_by_zone, 15, (450, 1800)),
    "repelling-own-keys": Kind(many_pods.repelling_own_keys, 15, (450, 1800)),
    "attracted-in-a-chain": Kind(many_pods.attracted_in_a_chain, 15, (300, 1500)),
    "attracted-in-a-ring": Kind(many_pods.attracted_in_a_ring, 15, (300, 1500)),
    "attracted-to-all": Kind(many_pods.attracted_to_all, 15, (300, 1500)),
    "spread-each": Kind(many_pods.spread_each, 15, (300, 1500)),
    "spread-over-all": Kind(many_pods.spread_over_all, 15, (300, 1500)),
    "soft-spread-over-all": Kind(many_pods.soft_spread_over_all, 15, (300, 1500)),
    "same-port": Kind(many_pods.same_port, 15, (300, 1500)),
    "many-ports": Kind(many_pods.many_ports, 8, (50, 200)),
    "node-names": Kind(many_pods.node_names, 15, (1000, 5000)),
    "shared-claim": Kind(many_pods.shared_claim, 15, (1000,)),
    "ephemeral-each": Kind(many_pods.ephemeral_each, 15, (1000, 5000)),
    "budgets": Kind(many_pods.budgets, 10, (300, 2000)),
    "namespaces": Kind(many_pods.namespaces, 50, (1000, 5000)),
    "long-each": Kind(many_pods.long_each, 10, (500, 2000)),
    # --- volumes to choose from ---
    "volumes-of-hosts": Kind(storage.volumes_of_hosts, 30, (2000, 5000)),
    "volumes-of-zones": Kind(storage.volumes_of_zones, 30, (2000, 5000)),
    "volumes-of-segments": Kind(storage.volumes_of_segments, 30, (2000, 5000)),
    "volumes-for-one": Kind(storage.volumes_for_one, 30, (2000, 5000)),
    "selected-volumes": Kind(storage.selected_volumes, 30, (2000, 5000)),
    "ephemeral-and-free": Kind(storage.ephemeral_and_free, 30, (500, 2000)),
    "immediate-claims": Kind(storage.immediate_claims, 30, (2000, 5000)),
    "rooms": Kind(storage.rooms, 30, (2000, 5000)),
    "rooms-of-two-labels": Kind(storage.rooms_of_two_labels, 30, (2000, 5000)),
}
