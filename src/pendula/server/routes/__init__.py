"""Routes that all rooms share.

bodies          bodies of requests: JSON read by the one reader of documents
dependencies    what a route asks of its caller, and what it knows of the request: used as FastAPI dependencies
engine          the routes that every engine has: its state now and then, its journal, commands, reasons
front           the routes of the whole server: the page, health, readiness, metrics, sessions
openapi         the OpenAPI 3.1 document: routes from FastAPI
"""
