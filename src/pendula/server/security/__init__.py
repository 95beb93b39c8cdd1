"""Who may, and from where.

gates         middleware that a request passes in this order: host, origin, content type, size, requests, identity
bodies        how many bytes of bodies the server holds at once: the last gate
identity      roles and principals: viewers look, operators command, admins govern
sessions      cookies for browsers, which cannot put a token on an event stream
wrong_tokens  how many an address may send before it is told to wait
tokens        access tokens, shown once and kept as digests, with a role and an expiry
"""
