"""What several calls do within their transaction.

replies     what goes in and out of a call: `Caller`, `Reply`, `Answer`
enqueue     jobs come in: one or many, each key once
following   the job that comes next is made
ending      what every end of a delivery does: the change and, where it was the last, the alert
"""
