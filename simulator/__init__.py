"""The world that Joinery acts on, in memory: a cluster, a cloud and a clock that can be driven.

Tests, ``make demo``, ``joinery replay`` and ``joinery simulate`` all use these same parts. The product never imports
them.
"""
