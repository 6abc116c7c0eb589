"""Commands on scenarios and rigs, a file each."""
