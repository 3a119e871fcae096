"""IAM: whether policies allow a call, and of which rights a call is made up."""
