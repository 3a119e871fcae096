"""The rules of pods about other pods: affinity, anti-affinity and spread."""
