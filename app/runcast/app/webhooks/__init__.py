"""News of runs for programs elsewhere: webhooks, and links that answer a question."""
