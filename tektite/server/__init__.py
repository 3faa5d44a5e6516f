"""The server: many clients on one engine. `import tektite` does not load it.

command          the commands `tektite serve` and `tektite password`
connections      who is connected, and how many may be
durable_catalog  what clients have created, for the next start
epochs           who closes epochs, and when a write is durable
health           liveness and readiness over HTTP
installation     opens the engine and installs what a description says
logs             structured logs
plan             reads and checks the description of a server
postgres/        PostgreSQL's protocol
scram            SCRAM-SHA-256: verifiers of passwords, and the exchange
server           the server: its engine, its front ends and what they share
sessions         one client's session: statements, transactions, cancelling
subscriptions    the changes that SUBSCRIBE gives a client
users            who may connect
work             threads that call the engine, and calls that can be cancelled
"""
