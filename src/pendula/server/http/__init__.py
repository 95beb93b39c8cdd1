"""What stands around every request.

connection    HTTP on one connection: how many there may be, and how slow a head may come
lingering     closing while the other side may still send: the answer arrives, the rest is dropped
envelope      the outermost middleware: request ids, safe headers, the one error form, a log line, a count
forwarded     behind a proxy: who calls, and by which scheme, as the proxy says
page          the built control room, read out of the package once and served from memory
"""
