"""The gateway to EC2 and its prices."""
