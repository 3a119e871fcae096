"""From first-fit's packing to a cheaper one, and the bound that proves how good that is.

Here pods and NodePools become items and bin types of the optimizer (``optimizer``), and its patterns become nodes.
Pure.
"""
