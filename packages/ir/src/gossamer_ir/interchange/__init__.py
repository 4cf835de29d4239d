"""What crosses borders between packages: records, signatures, wire format."""
