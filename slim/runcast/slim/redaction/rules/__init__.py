"""The rules for forms of secrets, as data: services, shapes, and the places where people and programs write them."""
