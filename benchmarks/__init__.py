"""Benchmarks of the sidecar, each beside a baseline from the same run. They print ratios; they assert nothing."""
