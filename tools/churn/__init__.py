"""A simulated day of a cluster: what consolidation costs and saves when pods come and go all the time.

``make churn`` plays the same day under several rules of consolidation, and says what each rule's nodes cost and how
many pods it evicted. A snapshot shows one decision; only a day shows whether decisions undo each other.
"""
