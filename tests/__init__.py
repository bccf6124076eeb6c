"""The tests. Start reading at `tests/bench`: the fakes that stand in for hosts and models."""
