"""Who sends a request: tokens, their verification and the viewers they stand for."""
