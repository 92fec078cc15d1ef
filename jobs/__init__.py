"""Work outside a request: arq functions and sweepers over MongoDB."""
