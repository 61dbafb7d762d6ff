"""The measured claims: each is a command that anybody can run again on their own machine."""
