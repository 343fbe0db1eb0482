"""The live log: leases, appends, readers and notes."""
