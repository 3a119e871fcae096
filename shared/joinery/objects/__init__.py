"""What decisions are about, as data: documents of Kubernetes, Karpenter and EC2, and the snapshot. No I/O."""
