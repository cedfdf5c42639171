"""First-party plugins, one file per framework or protocol, reached only through entry points."""
