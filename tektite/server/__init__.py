"""The server: many clients on one engine. `import tektite` does not load it.

client_socket    a client's connection to a port: its address, what it reads, limits of time
command          the commands `tektite serve` and `tektite password`
connectors/      sources and sinks that statements make
connections      all connections of a server, and their limit
durable_catalog  the objects that clients have created, for the next start
embedded         the console of an engine that a program holds
epochs           the policy by which epochs close, and the moment at which a write is durable
feed_registry    the feeds of a server, by the relation or query that they follow
feeds            the changes of a table or a view for all its subscribers
granularity      how often a subscriber gets changes
health           liveness, readiness and status
installation     opens the engine and installs what a description says
interests        one client's subscription to a feed
logs             structured logs
plan             reads and checks the description of a server
postgres/        PostgreSQL's protocol
rights           checks the rights of a user, for requests that are no statements
scram            SCRAM-SHA-256: verifiers of passwords, and the exchange
server           the server: its engine, its front ends and what they share
sessions         one client's session: statements, transactions, cancelling
subscriptions    the changes that SUBSCRIBE gives a client
users            the users who may connect
web/             HTTP and WebSocket
work             threads that call the engine, and calls that can be cancelled
"""
