"""What a cluster does to the objects of files when they are applied: defaults, pods of workloads, quotas."""
