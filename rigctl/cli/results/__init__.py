"""Commands on stored runs, a file each."""
