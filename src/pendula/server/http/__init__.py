"""HTTP connections and middleware.

connection    one HTTP connection: limits on connections and slow heads; closing without losing the response
envelope      the outermost middleware: request ids, security headers, error form, log line, metrics; proxy headers
page          the built control room, read from the package once and served from memory
"""
