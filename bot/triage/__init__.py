"""What people decide about alerts, in a comment or on the command line: one decision is one file here."""
