"""``joinery convert``: NodePools and EC2NodeClasses of any of Karpenter's APIs, written in another one."""
