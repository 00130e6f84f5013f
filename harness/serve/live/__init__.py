"""Cases against a live OpenAI-compatible server: sent under load, timed as they stream, and every output
judged."""
