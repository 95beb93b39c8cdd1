"""HTTP connections and middleware.

connection    one HTTP connection: limits on connections and slow heads
lingering     closes a connection so that the response arrives although the client still sends
envelope      the outermost middleware: request ids, security headers, error form, log line, metrics
forwarded     the client address and scheme as reported by a proxy
page          the built control room, read from the package once and served from memory
"""
