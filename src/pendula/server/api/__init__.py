"""Routes shared by schedulers, and tools for their own routes.

engines           list, create, close and remove engines; state, journal, commands, reasons, events, moments
combined_stream   several streams in one response
front             page, health, readiness, metrics, sessions, the list of schedulers
requests          the caller, the supervisor, query parameters and typed bodies of a request
openapi           the OpenAPI document
"""
