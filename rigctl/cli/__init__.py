"""The command line: `app` runs a command and turns errors into exit codes; `command_line` lists the commands."""
