"""The language-server half; the only place that knows pygls."""
