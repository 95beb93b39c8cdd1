"""One run: without a server, with a journal, its files, and its forks.

artifacts    what a run leaves in a directory: status, last tick, every event, a summary
forking      the same run with other settings from some tick on, and what that changes
headless     A run without a server: made from a document, stepped as far as one likes, told in one result
recording    A run written down: every command through a journal
"""
