"""What messages and values hold, in plain forms: text, content blocks, JSON."""
