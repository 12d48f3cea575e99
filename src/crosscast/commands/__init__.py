"""What each command of the command line does; `crosscast.cli` declares their options."""
