"""The bucket: the catalogue and the decision records."""
