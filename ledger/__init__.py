"""The SQL ledger of turns, requests, tool calls and compactions, and what reads logs into it."""
