"""Transport `openssh`: ssh(1) itself reaches a node, where rigctl's own SSH client cannot."""
