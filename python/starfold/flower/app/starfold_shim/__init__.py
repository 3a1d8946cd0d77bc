"""Passes bytes between Flower's messages and Unix sockets. It understands none of them."""
