"""What governance does within a transaction, of a call on jobs as of one on objects.

deliveries     what is pulled, acked and failed without a word of governance
carrying_out   what an ending writes, all or nothing
followups      the one job that waits for an object
judging        what an action is judged by: machine, tiers, gates
learning       whether anything is still found out
showing        objects, gates and endings as replies show them
"""
