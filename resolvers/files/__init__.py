"""Use cases of files: uploads, attachments and downloads."""
