"""The numbers of the search: how much is few, near or good enough, and how often a step is tried.

Most were tried at half and at double on the public scenarios (docs/decisions/0121 has the table). Elsewhere are the
budget of a search (``effort``), the numbers of the exact proof (``bounds``), and tolerances beside what they round.
"""

import numpy as np

# --- how large an instance is ---

#: An instance of no more copies, of no more items, is little: more thorough ways to pack it are soon done.
FEW_COPIES, FEW_ITEMS = 200, 40
#: A packing is improved where no more items and bin types are compatible: the work grows with them. Forty workloads of
#: some thousand pods that spread over five zones have seven thousand pairs, take twice as long, and cost 1.7 % less. Of
#: more items than ``MAX_ITEMS`` fewer pairs are few: a thousand pods of all kinds would take twice as long.
FEW_PAIRS, FEW_PAIRS_OF_MANY_ITEMS = 10_000, 5_000
#: Instances of more items are aggregated before a relaxation of them is solved.
MAX_ITEMS = 150
#: Sizes of item that an aggregation keeps.
AGGREGATES = 80
#: The cheapest bins of no more copies are mostly soon proven, so that is tried before they are packed in other ways.
SOON_SOLVED = 60
#: A repair of no more copies is solved exactly.
SOON_REPAIRED = 18

# --- the core ---

#: Classes of bin types in the core; fewer in that of a part of an instance that has many copies. With 50 the parts of
#: apart-3000 take half as long again, and cost .1 % more.
CORE_CLASSES, CORE_CLASSES_OF_PART = 50, 30
#: More bin types than that are a core only if they are of few classes.
MANY_BIN_TYPES = 300

# --- the assignment relaxation ---

#: An item of which at most so many fit on a bin may get a cardinality row of its own. With more, a fraction of a copy
#: is little.
FEW_FIT = 16
#: Rows for limits of one item each are in the program from the start, if there are no more; else as they are broken.
FEW_LIMIT_ROWS = 1_500
#: How often cardinality rows are added to one program.
CUT_ROUNDS = 8
#: A residual program is written anew once no more than this share of its items is left. Writing it, and losing the
#: basis, costs as much as several solves.
REBUILT_BELOW = 0.6
#: Aggregates of items with limits are formed anew once no more than this share of their items is left. With .6 three
#: plans for 10,000 pods whose replicas are apart cost up to 1.3 % more.
AGGREGATED_ANEW_BELOW = 0.8

#: Of the copies of a part that has another one's columns so large a share may be more or less than that one has.
UNLIKE = 0.2

# --- good enough, and near ---

#: A packing that costs no more than so many times its relaxation, or the master's optimum, is not improved.
GOOD_ENOUGH = 1.002
#: A packing that costs more than so many times its relaxation is sought once more from other duals, which takes as long
#: again. Of 33 instances nearer ones gained nothing by it; the others cost .8 % less in the mean, and up to 4.6 %.
FAR_FROM_OPTIMUM = 1.01
#: A round of column generation that lowers the objective by no more than this share gained nothing.
LITTLE_GAIN = 1e-4
#: Bin types count whose reduced cost is at most this share of their cost: those that are filled in a round of rounding
#: though the relaxation does not buy them; that column generation fills; that may take the place of bins taken apart,
#: or hold what dives leave.
NEAR_FOR_ROUNDING, NEAR_FOR_GENERATION, NEAR_FOR_REPAIR = 0.005, 0.05, 0.1

# --- column generation ---

#: How far a dual may stray from the assignment relaxation's, as a share of it; in turn. The last is no box.
BOX_WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.5, np.inf)
#: The box is widened when fewer new columns than that were found.
FEW_NEW_COLUMNS = 5
#: In turn: dive while a pattern is wanted half; do not dive; dive to the end. Which is best differs from file to file.
DIVE_THRESHOLDS = (0.5, 1.0, 0.0)
#: How random the order of filling a bin in pricing is, in turn: as a multiple of an item's dual.
FILLING_NOISES = (0.1, 0.5)
#: How often each bin type is filled in a round of pricing.
FILLED_PER_TYPE = 6
#: So many of the filled bins are improved by exchanges, besides those that the master buys; for a copy so many items
#: are tried in its place.
EXCHANGED, EXCHANGES = 30, 2
#: New columns of one bin type in a round at most: they are much alike, and each one slows the master.
NEW_PER_TYPE = 8

# --- descents ---

#: Each begins with another bin: that which the master wants most, then the one after it, and so on.
DIVES = 4
#: Pricing ends after so many rounds that gained nothing.
STALE_ROUNDS = 3
#: A bin that is wanted less often than that is not begun with in place of the one wanted most.
WORTH_BEGINNING_WITH = 0.2

# --- local search ---

#: Bins taken apart at once. More are rarely repaired more cheaply, and each try takes longer.
MOST_DESTROYED = 7
#: Errors added to the value of bins in a repair, so that the same bins taken apart again are packed in another way.
REPAIR_NOISES = (0.0, 0.005, 0.02)

# --- consolidation ---

#: Of items and bins that are compatible. Packing with all care is for no more than the former: beyond, it takes too
#: long for what patterns leave to gain. With more than the latter small steps are made from the
#: cheapest start alone, and a solution is not looked at again: of 600 to 5,000 bins that found nothing in a fifth of
#: the time.
FEW_BIN_PAIRS, MANY_BIN_PAIRS = 6_000, 20_000
#: Patterns are sought, for a choice and for a bound, where no more items and bins are compatible. Each takes seconds.
PATTERN_PAIRS = 15_000
#: The room that whole copies may waste, as a share of all, in turn: with more, the relaxation keeps more bins.
MARGINS, SWIFT_MARGINS = (0.0, 0.01, 0.02, 0.04, 0.08), (0.0, 0.03)
#: Shares of a bound. A solution so near the relaxation is not improved; so near the relaxation over patterns it gets no
#: whole patterns, which take seconds; only one farther than the last is stepped to from further starts, each of which
#: takes as long again.
NEAR_RELAXATION, NEAR_PATTERNS, FAR_FROM_RELAXATION = 0.001, 0.005, 0.01
#: A share of its cost. Where pods dealt to domains by what a choice retires make it dearer by more, all bins are chosen
#: once more; twice is no better (docs/decisions/0158).
DEARER_BY_DEALING = 0.01
#: Times that a solution is looked at again.
REPETITIONS = 3
#: Bins that each kind of small step is tried with.
STEPS = 60
#: New bins for what is left are sought to the end, even where time is up, if they are of no more patterns.
PATTERNS_AT_LEAST = 100
#: How much the first two resources count, the first of which is scarcest most often: several ways are tried.
PLACING_WEIGHTS = ((1.0, 1.0), (1.0, 0.6), (1.0, 0.4), (0.6, 1.0))
#: How random the order of filling bins of patterns is; the latter where the former bring nothing new.
ORDER_NOISES, MORE_ORDER_NOISES = (0.0, 0.1, 0.3, 0.6), (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.15, 0.4)
#: Rounds without a new pattern after which there are probably none that pay.
DRY_ROUNDS = 4
#: Rounds of pricing at most, and pairs of an item and a bin that are priced in all of them.
PATTERN_ROUNDS, PRICED_PAIRS = 120, 400_000
#: Rounds after those in which bins are filled best; how often that is proven for bins of many small items, which takes
#: a second; and the share of the optimum to which a bound is near enough.
EXACT_ROUNDS, PROOFS, NEAR_BOUND = 20, 2, 0.01
#: The integer program chooses among so many patterns, those of the least reduced cost, in so many branch-and-bound
#: nodes.
COLUMNS, BRANCHES = 1_000, 5
#: Into how many parts, by the ratio of their resources and then by size, bins that admit the same are divided.
CLUSTER_RATIOS, CLUSTER_SIZES = 5, 4
#: Of items and standing bins: where there are no more, every bin is a cluster. Of items and clusters: beyond, the
#: clusters are fewer, because what more of them would show is not worth the time.
UNCLUSTERED_PAIRS, CLUSTERED_PAIRS = 13_000, 8_000
#: Of items and bins, standing or new; and of standing bins. Where there are no more, bins have to be whole for a bound:
#: of more bins a part of one matters little.
WHOLE_PAIRS, WHOLE_BINS = 1_000, 30
#: Branch-and-bound nodes for that bound. Nearly all of the time goes into the first one. Ten times as many take up to a
#: half more, and raise the bound of some clusters two to four times as much.
WHOLE_BRANCHES = 20
