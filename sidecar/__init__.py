"""The host process: transport, server, sessions, agents, models and stores."""
