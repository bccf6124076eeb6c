"""One agent, run once: its plan, its providers, its model calls."""
