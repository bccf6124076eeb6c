"""The wire contract: types, methods, errors. Runs nothing; imports pydantic only."""
