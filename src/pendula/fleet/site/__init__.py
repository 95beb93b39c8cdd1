"""What the running system loads: the compiled map and its file.

compiled_map    the compiled map: everything the running system asks about a site, answered in integers
file            the file of a compiled map: canonical JSON, the named part in metres
file_names      the part of a compiled map that people read: names and metres, as the contract shows it
"""
