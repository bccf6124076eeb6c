"""Requests in, answers out: envelopes, order, limits, errors. Binds the method table to the handlers."""
