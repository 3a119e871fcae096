"""Whether a plan is right, derived anew from the specs of pods and nodes:
it shares no code with the solver that made the plan. Pure.
"""
