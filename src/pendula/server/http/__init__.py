"""What stands around every request.

connection    HTTP on one connection
envelope      around every request: an id, the safe headers, the one error form, a line in the log and a count
forwarded     behind a proxy: who calls, and by which scheme, as the proxy says
page          the built control room, read out of the package once and served from memory
"""
