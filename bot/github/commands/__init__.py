"""What people say to the bot in comments. One command is one file here, which registers itself in all_commands.py."""
