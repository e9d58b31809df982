"""Plain values that travel between the rooms; imports nothing of logdoc."""
