"""What keeps a store in order beside the work itself.

alerts          alerts go out: stored with the change that raised them, and handed to every sink at least once
outbox          objects that live in another database are told of their next time: at least once, in order
recurring       jobs that come again: the next occurrence of every entry is always in the store
retention       what leaves a store: jobs that have been over for long, in small steps, and the ban on their keys
verification    whether a store is what it should be: its invariants, its trail
"""
