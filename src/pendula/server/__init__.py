"""The server: every room over HTTP, live, with the control room.

settings    flags, environment, TOML file, defaults            tokens, sessions, identity    who may
serving     lock, bind, serve, stop                            gates, envelope, forwarded    what a request passes
app         the factory                                        protocol                      heads that never come
supervisor       everything one running server holds                front, engines                the routes
hosting     one engine and its thread                          streams                       server-sent events
rooms       the rooms by name, and what is needed of one       views, openapi, bodies        the shapes of the wire
datadir     the locked data directory                          page, logs, metrics, errors
"""
