"""Documents into source maps, profiles and fleets, with all their faults.

documents    documents into the nouns of the room: source maps, truck profiles, compile parameters, fleets
unread       members of parameter and fleet files that nobody reads: allowed within a major version
"""
