"""What the DLPack standard asks of a library, as checks of its producer and of its consumer."""
