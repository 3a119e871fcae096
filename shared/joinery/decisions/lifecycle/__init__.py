"""A NodeClaim's life, from the plan that it is written for until its instance is gone. Pure decisions."""
