"""Who may, and from where.

gates       what a request passes before it is answered, in this order: host, origin, content type, size, requests
identity    who asks, and what that lets them do: viewers look, operators command, admins govern
sessions    sessions of browsers: a page cannot put a header on an event stream
tokens      access tokens: 32 random bytes shown once, kept as sha256 with a name, a role and an expiry
"""
