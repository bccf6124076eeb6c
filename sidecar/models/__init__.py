"""Chat clients, by endpoint."""
