"""Says from outside whether ``joinery disrupt`` is right, and how good its decisions are.

Development only. Nothing here shares code with the decision: a mistake in one is not repeated in the other. What a
decision is, is said by the DisruptionPlan document that ``joinery disrupt -o json`` prints.
"""
