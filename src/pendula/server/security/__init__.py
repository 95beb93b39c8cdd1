"""Authentication, roles and request gates.

gates      middleware in this order: host, origin, content type, size, requests, identity, bodies
identity   callers, their roles, and access tokens, stored as digests with a role and an expiry
sessions   cookies for browsers, which cannot send a token with an event stream
"""
