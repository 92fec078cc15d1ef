"""The settings by subject, without access to the environment. `server.settings` puts them together."""
