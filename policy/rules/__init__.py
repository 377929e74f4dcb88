"""Rules: when to compact, each compiled into contexts from which it does."""
