"""`sidecar.toml`: what it may say, and how it is read."""
