"""Context providers, and the vocabulary that they are written in."""
