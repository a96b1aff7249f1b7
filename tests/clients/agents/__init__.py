"""Real agents and MCP clients, and the scripted model that stands in for the one they would ask."""
