"""The command line: `app` lists and runs the commands; `errors` turns errors into exit codes."""
