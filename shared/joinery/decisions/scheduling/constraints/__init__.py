"""What pods, volumes and NodePools demand: requirements, taints, resources,
rules over topology keys, and classes of like pods. Pure.
"""
