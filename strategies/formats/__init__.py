"""One file for each format of messages: how it is read, changed and written."""
