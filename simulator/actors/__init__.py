"""Whoever acts in a story besides Joinery: kubelets, the scheduler, controllers, EC2."""
