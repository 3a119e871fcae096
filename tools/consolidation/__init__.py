"""Says whether decisions about nodes are right, and how good they are, on files of whole clusters.

Right is what verification and the judge find no fault with. They look at where pods would run; that no rule about
candidates and budgets is broken is asserted by ``tests/unit/decisions/disruption/test_rules.py``.
"""
