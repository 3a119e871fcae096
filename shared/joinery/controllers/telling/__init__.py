"""What is told of a decision: Events and log lines for people, and the record from which it can be made again."""
