"""The duals of the rows that couple bins, and what prices a bin's own rows, as enumerating patterns needs them.

Fix duals y of the rows that couple bins (demands, limited supplies, side constraints), and let the reduced cost of a
pattern be its bin's cost less what y prices its bin and its copies at:

    r_q  =  c_k - y A_k - sum_i a_iq u_ik        u_ik: what y pays for a copy of item i on a bin of type k

**Claim.** A packing costs at least base + the reduced costs of its bins, where base = sum_r y_r b_r over the coupling
rows. **Proof.** As in ``duality``, with the terms of d . v taken bin by bin. ∎
"""

from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import of_right_sign, reduced_costs


@dataclass(frozen=True, eq=False)
class PatternDuals:
    """The duals of a formulation, sorted by what they price. All in $/h.

    ``coupling``: float64[rows], those of the coupling rows, zero for a bin's own. ``base``, ``bin_costs`` and
    ``item_duals`` follow from them.

    ``base``: what no packing costs less than, if no pattern has a negative reduced cost.
    ``bin_costs``: float64[bin types], c_k - y A_k. ``item_duals``: float64[items, bin types], u_ik.

    What prices a bin's own rows, by which no copy is paid more than it takes: ``capacity_duals``: float64[bin types,
    resources], for a unit; ``item_row_duals``: float64[items, bin types], for a copy within the most of an item;
    ``limit_duals``: float64[limits, bin types], for a copy within a limit; ``conflict_duals``: float64[bin types], for
    all conflicts of a bin together.

    ``infeasibility``: how far below zero the reduced cost of a pattern may be at worst.
    """

    coupling: Floats
    base: float
    bin_costs: Floats
    item_duals: Floats
    capacity_duals: Floats
    item_row_duals: Floats
    limit_duals: Floats
    conflict_duals: Floats
    infeasibility: float

    def with_coupling(self, formulation: CompactFormulation, coupling: Floats, infeasibility: float) -> "PatternDuals":
        """Other duals of the coupling rows (float64[rows], zero for a bin's own). Of what prices a bin's own rows, the
        most of an item makes up for what copies are paid beyond what they take.
        """
        base, bin_costs, item_duals = _by_coupling(formulation, coupling)
        instance = formulation.constrained.instance
        taken = instance.sizes @ self.capacity_duals.T + instance.limit_members @ self.limit_duals
        return replace(
            self,
            coupling=coupling,
            base=base,
            bin_costs=bin_costs,
            item_duals=item_duals,
            item_row_duals=np.maximum(item_duals - taken, 0.0),
            conflict_duals=np.zeros_like(self.conflict_duals),
            infeasibility=infeasibility,
        )


def pattern_duals(formulation: CompactFormulation, duals: Floats) -> PatternDuals:
    """Sort the duals (float64[rows]) of a compact formulation's optimum.

    They are not exact. By how much they break what is claimed of them is computed: a variable of the compact
    formulation may have a reduced cost of -e. Each bin of a packing has one variable for its type and at most one for
    each of its items, so its reduced cost may be as low as -e (1 + items).
    """
    program, instance = formulation.program, formulation.constrained.instance
    duals = of_right_sign(program, duals)
    coupling = duals.copy()
    coupling[formulation.capacity_rows.start : formulation.first_coupling_row] = 0.0
    base, bin_costs, item_duals = _by_coupling(formulation, coupling)
    bin_types, pairs = formulation.bin_type_count, formulation.bin_type_count + formulation.pair_count
    by_all = reduced_costs(program, duals)
    # The rows of a bin are "at most" rows, so their duals are not above zero; as prices they are not below.
    own = -duals
    item_row_duals = np.zeros(instance.compatible.shape)
    item_row_duals[formulation.items, formulation.bin_types] = own[formulation.item_rows]
    capacity_duals, used = np.zeros(instance.capacities.shape), formulation.resources
    capacity_duals[:, used] = own[formulation.capacity_rows].reshape(len(used), bin_types).T
    conflict_duals = np.zeros(bin_types)
    np.add.at(conflict_duals, formulation.conflict_bin_types, own[formulation.conflict_rows])
    limit_rows = formulation.limit_rows
    return PatternDuals(
        coupling=coupling,
        base=base,
        bin_costs=bin_costs,
        item_duals=item_duals,
        capacity_duals=capacity_duals / instance.scale,
        item_row_duals=item_row_duals,
        limit_duals=np.array([own[rows] for rows in limit_rows]).reshape(len(limit_rows), bin_types),
        conflict_duals=conflict_duals,
        infeasibility=float(-np.minimum(by_all[:pairs], 0.0).min(initial=0.0)) * (1 + len(instance.demands)),
    )


def _by_coupling(formulation: CompactFormulation, coupling: Floats) -> tuple[float, Floats, Floats]:
    """``base``, ``bin_costs`` and ``item_duals`` of these duals (float64[rows])."""
    program = formulation.program
    ends = np.where(coupling > 0, program.row_lower, program.row_upper)
    base = float((coupling * np.where(coupling == 0, 0.0, ends)).sum())
    bin_types, pairs = formulation.bin_type_count, formulation.bin_type_count + formulation.pair_count
    reduced = reduced_costs(program, coupling)
    item_duals = np.zeros(formulation.constrained.instance.compatible.shape)
    item_duals[formulation.items, formulation.bin_types] = -reduced[bin_types:pairs]
    return base, reduced[:bin_types], item_duals
