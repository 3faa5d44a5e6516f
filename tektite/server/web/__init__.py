"""HTTP and WebSocket on one port: the requests of `docs/wire-protocol.md`, as JSON or Arrow.

access                 who a client is, and which web pages may talk to the server
answers                what a request gives, and what all classes of requests share
body                   the fields of a request, checked
connection             one client's connection: finds out what it speaks
console/               the page that browsers show
console_files          the files of that page
exchanges              requests and responses of HTTP
metrics                figures for Prometheus
relation_requests      requests about tables and views
requests               all requests by their names
routes                 what HTTP's paths lead to
rule_requests          requests with rules, attributes and facts
server_requests        requests about the server and its clients
socket                 a WebSocket: messages in, answers and changes out
statement_requests     requests with statements of SQL
subscription_requests  requests for changes
"""
