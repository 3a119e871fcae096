"""What a decision leaves for people: Events, log lines, and a record from which it can be made again."""
