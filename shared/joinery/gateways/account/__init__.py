"""What the installer does in the AWS account: a gateway and its adapter."""
