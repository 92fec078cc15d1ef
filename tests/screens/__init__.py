"""The screens of the web client: their operations, data to show, and the commands to MongoDB that they cost."""
