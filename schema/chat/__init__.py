"""Types and root fields of communities, topics, messages, threads and stamps."""
