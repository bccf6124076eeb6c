"""Sessions: open ones, their runs and event logs, and repair after a crash."""
