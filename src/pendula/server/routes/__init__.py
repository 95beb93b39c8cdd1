"""Routes that schedulers share, and what their own routes are made with.

lifecycle       engines of a scheduler are listed, made, closed, opened again and removed
engine          what every engine has: state now and then, journal, commands, reasons, events
moments         the times that a journal holds, and its incidents
together        several streams in one response
front           the whole server: page, health, readiness, metrics, sessions, the list of schedulers
query           names of parameters that nobody knows are refused
bodies          JSON bodies into types, every fault with its place
openapi         the OpenAPI document: documented answers, refusals and bodies
dependencies    FastAPI dependencies: the caller in the role a route needs, the supervisor, the request's id
"""
