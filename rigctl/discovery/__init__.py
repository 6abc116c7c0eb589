"""From host names to a rig file: hosts are asked by SSH, switches by SNMP, and what is found is written down."""
