"""Writes a rig file from host names, after reading the hosts by SSH or srun and switches by SNMP."""
