"""The paths of the protocol, below `/api/v1/simulator`.

runs         runs come and go; what is known of them and what they left
scenarios    scenarios are listed, uploaded and looked at
networks     pictures, measured values, bottlenecks, who can be paid
past         a run as it was, and what a time slider asks for
streams      events as a stream, or asked for
actions      what a person does, each call with its form
acting       how each of them is carried out, once
calling      who calls, and how a query is read
"""
