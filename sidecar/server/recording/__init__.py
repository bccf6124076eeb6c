"""A wire log for bug reports and tests: what went over the connection, in the format of the golden conversations."""
