"""Long-term memory over a store: one order for what was found, and vectors for what was written."""
