"""Training frameworks: each module translates the events of one, and needs it installed."""
