"""``spec.kubelet`` of a class: a map with kubelet's own names, and what becomes of it.

``settings``: what the kubelet has. ``configuration``: what decides on a node's room. ``expressions``: values that
depend on the instance type. ``checks``: why a class with these settings cannot be used.
"""
