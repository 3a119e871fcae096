"""An account and a cluster on this machine, for deploying the built stack as a user does.

CloudFormation, Lambda, SQS, S3, DynamoDB, Scheduler, Secrets Manager and IAM are ministack, in a process and a virtual
environment of its own (``server.py``); IAM policies are enforced. EC2 and SSM are moto with the simulator's
corrections. Kubernetes is the real control plane, which learns who calls from a stand-in of EKS (``eks.py``) and
reaches Function URLs through a proxy (``front.py``). Nobody plays the kubelets: a test does.

What ministack lacks is either corrected in ``server.py`` or named in docs/stand-in.md as not run.
"""
