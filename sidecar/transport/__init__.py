"""Bytes in and out: stdio, framing, reader, writer, parent watch, signals. Knows no method and no session."""
