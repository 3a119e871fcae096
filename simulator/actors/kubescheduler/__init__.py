"""A small kube-scheduler: it filters nodes, scores them, and binds a pod to the best, one pod at a time.

It knows nothing of Joinery's plans. What it honours and what it prefers follows kube-scheduler's default plugins, so
that a plan which the real scheduler would not follow does not work here either. Preemption is not simulated.
"""
