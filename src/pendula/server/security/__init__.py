"""Authentication, roles and request gates.

gates      middleware in this order: host, origin, content type, size, requests, identity, bodies
identity   callers, their roles, access tokens and browser sessions
"""
