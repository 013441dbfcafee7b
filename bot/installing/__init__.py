"""What `torchbench init` writes into a repository that installs the bot: its configuration, and short workflows that
call those of the bot at a pinned commit."""
