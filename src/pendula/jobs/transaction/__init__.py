"""What several calls do within their transaction.

replies     input and output of a call: `Caller`, `Answer`
enqueue     store jobs: one or many, each key once
following   make the follow-up job
ending      end a delivery: the change and, for a dead letter, the alert
"""
