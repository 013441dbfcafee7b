"""What people read: Markdown made from reports. Never imports bot.github."""
