"""`runcast demo`: an agent with a scripted model, a worker that can be killed, and a page that stays."""
