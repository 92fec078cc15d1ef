"""Pictures of users and of foreign pages: decoded, stripped and reduced in a process that may be killed."""
