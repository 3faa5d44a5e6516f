"""Access control: roles, grants, owners and policies on rows.

access_control     what an engine knows of roles and rights, and the questions that statements ask
access_tables      roles, grants, owners and policies as tables, which a storage keeps
allowances         limits of one user
policy_conditions  the condition under which a row of a protected table is seen or written
rights_trees       trees of SQL that ask for the rights of whoever reads
rights_views       roles and rights as views, which standing queries are joined with
system_policies    what users see of system relations
verifiers          passwords as SCRAM verifiers, and tokens as digests
"""
