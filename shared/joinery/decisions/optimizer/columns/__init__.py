"""Column generation: whole bins (patterns) as columns of a restricted master problem, and a dive to whole numbers of
them.
"""
