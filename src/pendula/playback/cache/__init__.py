"""Channels on disk: the form of a file, reading, writing, merging and mending it.

layout       A cache file as bytes: a header block, then data blocks of whole records, newest first
merge        new contents for a cache: what a source lists, merged by id into what is there
refresher    channels kept fresh in the background: at most two at once, the one whose refresh is the oldest first
repair       what is in a cache file, what is wrong with it, and a sound file in its place
shelf        channel caches on disk: written whole and at once, read by blocks
"""
