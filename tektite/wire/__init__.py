"""The messages between the server and its clients over HTTP and WebSocket.

failures     errors as data, and back
json_values  values as JSON holds them, by their types
messages     messages as text (JSON) and as bytes (JSON and Arrow)
rows         tables as JSON, and rows of JSON as a table's
"""

PROTOCOL = 1
"""The version of the protocol. A server refuses a client of another one."""
