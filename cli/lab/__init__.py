"""The lab: one conversation in a terminal, and what each strategy makes of it."""
