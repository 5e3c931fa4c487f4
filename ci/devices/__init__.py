"""One protocol, and the devices that follow it."""
