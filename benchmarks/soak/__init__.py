"""The long tiers of the fault tests: seeded, resumable in pieces, with a report. The short ones are in `tests/e2e`."""
