"""Datalog: rules in two syntaxes, one meaning; built when somebody wants their answers, and kept up to date from then on."""
