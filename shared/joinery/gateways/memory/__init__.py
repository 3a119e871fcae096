"""What is remembered between runs: a bucket of documents, and a table of what was refused."""
