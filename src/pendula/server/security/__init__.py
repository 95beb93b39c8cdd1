"""Authentication, roles and request gates.

gates         middleware in this order: host, origin, content type, size, requests, identity
bodies        limits the bytes of request bodies in memory: the last gate
identity      roles and principals: viewer, operator, admin
sessions      cookies for browsers, which cannot send a token with an event stream
wrong_tokens  rate limit for wrong tokens by address
tokens        access tokens, shown once and stored as digests, with a role and an expiry
"""
