"""Users, their permissions and their tenants."""
