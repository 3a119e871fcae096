"""SIG Autoscaling's kinds (autoscaling.x-k8s.io), as we read and write them: room and nodes for pods still to come."""
