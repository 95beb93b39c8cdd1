"""Routes shared by schedulers, and tools for their own routes.

lifecycle         list, create, close, reopen and remove engines
engine            state now and in the past, journal, commands, reasons, events
moments           the times and incidents of a journal
combined_stream   several streams in one response
front             page, health, readiness, metrics, sessions, the list of schedulers
query             rejects unknown query parameters
bodies            request bodies to types, every fault with its place
openapi           the OpenAPI document
dependencies      FastAPI dependencies: the caller with a role, the supervisor, the request id
"""
