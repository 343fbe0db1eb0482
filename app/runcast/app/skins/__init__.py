"""Other clients' wire formats beside AG-UI's: Vercel's AI SDK (`useChat`)."""
